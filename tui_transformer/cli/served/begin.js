// The terminal measures its font once: it begins when that is there.
"use strict";

(() => {
  const begin = window.onload;
  window.onload = async (event) => {
    await Promise.allSettled([document.fonts.load("16px 'Roboto Mono'"), document.fonts.load("bold 16px 'Roboto Mono'")]);
    begin(event);
  };
})();
