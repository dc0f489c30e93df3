
// Filters the examples; without it the page shows all of them.
(function () {
  var form = document.querySelector("form.filter");
  if (!form) { return; }
  var examples = Array.from(document.querySelectorAll("article.example"));
  var groups = Array.from(document.querySelectorAll("details.group"));
  var wasOpen = groups.map(function (group) { return group.open; });
  var status = form.querySelector("output");
  var fields = form.elements;
  var texts = examples.map(function (example) { return example.textContent.toLowerCase(); });
  form.hidden = false;

  function apply() {
    var wanted = fields.search.value.trim().toLowerCase();
    var kind = fields.kind.value;
    var type = fields.type ? fields.type.value : "";
    var active = [wanted, kind, type].some(Boolean);
    var shown = 0;
    examples.forEach(function (example, row) {
      var types = example.dataset.types.split("|");
      var fits = [
        texts[row].includes(wanted),
        kind === "" ? true : example.dataset.kind === kind,
        type === "" ? true : types.includes(type)
      ].every(Boolean);
      example.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    groups.forEach(function (group, row) {
      var matching = group.querySelectorAll("article.example:not([hidden])").length;
      group.hidden = matching === 0;
      group.open = active ? matching !== 0 : wasOpen[row];
    });
    status.value = active ? shown + " of " + examples.length + " examples" : "";
  }

  function openTarget() {
    var target = document.getElementById(location.hash.slice(1));
    if (groups.includes(target)) { target.open = true; }
  }

  window.addEventListener("hashchange", openTarget);
  openTarget();
  form.addEventListener("input", apply);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(apply, 0); });
  window.addEventListener("beforeprint", function () {
    groups.forEach(function (group) { group.open = true; });
  });
})();
