// SPDX-License-Identifier: Apache-2.0
// Loads Mermaid, which is large, on pages that have a diagram.
const here = document.currentScript.src;
addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector("pre.mermaid")) return;
  const script = document.createElement("script");
  script.src = new URL("mermaid.min.js", here).href;
  script.onload = () => {
    mermaid.initialize({ startOnLoad: false, theme: "default", deterministicIds: true });
    mermaid.run({ querySelector: "pre.mermaid" });
  };
  document.head.append(script);
});
