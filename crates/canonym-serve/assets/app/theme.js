// Runs before the first paint, so that a chosen theme does not flash; a file of its own because inline scripts are refused.
(function () {
  try {
    var theme = localStorage.getItem('canonym.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch (_) {
    // Without storage the theme of the system holds.
  }
})();
