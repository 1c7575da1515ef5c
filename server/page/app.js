"use strict";
fetch("/api/run")
  .then((reply) => reply.json())
  .then((run) => {
    document.getElementById("run").textContent = run.name + ": " + run.data.entities + " entities";
  });
