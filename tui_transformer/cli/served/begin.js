// The terminal measures its font once: it begins when that is there.
"use strict";

(() => {
  const begin = window.onload;
  window.onload = async (event) => {
    await Promise.allSettled([document.fonts.load("16px 'Roboto Mono'"), document.fonts.load("bold 16px 'Roboto Mono'")]);
    const terminal = document.getElementById("terminal").dataset;
    const [columns, lines] = [Number(terminal.columns), Number(terminal.lines)];
    if (columns) {
      // as large as all of the screen that is looked on fits: a character of the font is 0.602 as wide as high, a line 1.32
      const fits = Math.min((window.innerWidth - 16) / (columns * 0.602), (window.innerHeight - 8) / (lines * 1.32));
      terminal.fontSize = String(Math.max(4, Math.floor(fits)));
    }
    begin(event);
  };
})();
