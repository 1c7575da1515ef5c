// The colour theme: auto (the system's), light or dark. A classic script in the head of the page, so that
// the first paint already has the chosen colours.
(() => {
    "use strict";
    const themes = ["auto", "light", "dark"];

    // Storage may be forbidden by the browser: the theme then lasts as long as the page.
    let theme = "auto";
    try {
        const kept = localStorage.getItem("vlp-theme");
        if (themes.includes(kept)) theme = kept;
    } catch (_) { /* the default stays */
    }

    function apply() {
        if (theme === "auto")
            delete document.documentElement.dataset.theme;
        else
            document.documentElement.dataset.theme = theme;
        const button = document.getElementById("theme");
        if (button) button.textContent = `Theme: ${theme}`;
        document.dispatchEvent(new Event("themechange"));
    }

    apply();
    document.addEventListener("DOMContentLoaded", () => {
        apply();
        document.getElementById("theme").addEventListener("click", () => {
            theme = themes[(themes.indexOf(theme) + 1) % themes.length];
            try {
                localStorage.setItem("vlp-theme", theme);
            } catch (_) { /* see above */
            }
            apply();
        });
    });
})();
