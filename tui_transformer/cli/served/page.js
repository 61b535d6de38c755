// A connection that comes back by itself. textual.js opens a WebSocket and knows nothing of this: it is given one that
// lasts, has a session's key for the server, and says on the page what becomes of it.
"use strict";

(() => {
  const about = document.currentScript.dataset;
  const root = about.root;
  const LEFT = 1000, IDLE = 4001, ELSEWHERE = 4002;
  const FIRST = 500, LONGEST = 5000; // milliseconds until the connection is tried again
  const FOR_A_MOMENT = 4000;
  const Plain = window.WebSocket;

  const newKey = () =>
    Array.from(crypto.getRandomValues(new Uint8Array(24)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  let fading = 0;
  function say(text, { again = false, fades = false } = {}) {
    clearTimeout(fading);
    const said = document.getElementById("said");
    document.getElementById("words").textContent = text;
    document.getElementById("again").hidden = !again;
    said.hidden = !text;
    if (again) document.getElementById("again").focus();
    if (fades) fading = setTimeout(() => say(""), FOR_A_MOMENT);
  }

  function takeKeys() {
    const input = document.querySelector(".xterm-helper-textarea");
    if (input && document.getElementById("again").hidden) input.focus({ preventScroll: true });
  }

  class Lasting extends EventTarget {
    constructor(url) {
      super();
      this.url = url;
      this.key = newKey();
      this.binaryType = "arraybuffer";
      this.wait = FIRST;
      this.was = false; // whether there was a connection before
      this.seen = false; // whether this connection has shown something
      this.connect();
    }

    connect() {
      const socket = (this.socket = new Plain(`${this.url}&session=${this.key}`));
      socket.binaryType = this.binaryType;
      this.seen = false;
      socket.addEventListener("open", () => {
        this.wait = FIRST;
        this.dispatchEvent(new Event("open"));
      });
      socket.addEventListener("message", (event) => this.take(event.data));
      socket.addEventListener("close", (event) => this.lose(event));
    }

    send(data) {
      if (this.socket.readyState === Plain.OPEN) this.socket.send(data);
    }

    take(data) {
      if (typeof data !== "string") {
        this.show(data);
        return;
      }
      const [kind, value] = JSON.parse(data);
      if (kind === "session") {
        if (this.was) say(value === "resumed" ? "the connection is back: the session goes on"
          : "the connection is back: the session had ended, and a new one has begun", { fades: true });
      } else if (kind === "look") {
        const terminal = document.getElementById("terminal").dataset, lines = JSON.parse(data)[2];
        if (String(value) !== terminal.columns || String(lines) !== terminal.lines) location.reload(); // in its size
      } else if (kind === "deliver_file_start") {
        const link = document.createElement("a");
        link.href = `${root}download/${encodeURIComponent(value)}`;
        link.download = "";
        link.click();
      } else {
        this.dispatchEvent(new MessageEvent("message", { data }));
      }
    }

    show(data) {
      if (!this.seen) {
        this.seen = true;
        if (!this.was) say("");
        this.was = true;
        takeKeys();
        this.send(JSON.stringify(["focus"]));
      }
      this.dispatchEvent(new MessageEvent("message", { data }));
    }

    lose(event) {
      if ([LEFT, IDLE, ELSEWHERE].includes(event.code)) {
        say(`the session has ended${event.reason ? `: ${event.reason}` : ""}`, { again: true });
        this.dispatchEvent(new CloseEvent("close", { code: event.code }));
        return;
      }
      this.explain();
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(this.wait * 2, LONGEST);
    }

    async explain() {
      const trying = "this page tries again by itself";
      let text = `the connection is lost: ${trying}`;
      try {
        const answer = await fetch(`${root}free`, { cache: "no-store" });
        if (answer.status === 403) {
          text = "the server was started anew: open the address that it printed";
        } else if (answer.ok) {
          const { free, of } = await answer.json();
          if (free < 1) text = `all ${of} sessions are taken: ${trying}`;
        }
      } catch {
        // the server is away
      }
      if (this.socket.readyState !== Plain.OPEN) say(text);
    }
  }

  window.WebSocket = Lasting;
  window.addEventListener("focus", takeKeys);
  window.addEventListener("DOMContentLoaded", () =>
    document.getElementById("again").addEventListener("click", () => window.location.reload()));
})();
