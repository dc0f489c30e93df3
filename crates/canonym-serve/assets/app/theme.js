// Runs before the first paint, so that the chosen theme does not flash; a separate file because inline scripts are blocked.
(function () {
  try {
    var theme = localStorage.getItem('canonym.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch (_) {
    // Without storage, the system theme is used.
  }
})();
