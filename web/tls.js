// The page that explains certificates: its links lead to the encrypted address, and it notices a device that trusts it.
// Nothing is stored and nothing else is loaded.

const secure = new URL("/", location.href);
secure.protocol = "https:";
for (const link of document.querySelectorAll("[data-open]")) link.href = secure.href;

// A request to an address that the device does not trust fails.
fetch(new URL("/favicon.svg", secure), { mode: "no-cors", cache: "no-store" }).then(
  () => { document.getElementById("trusted").hidden = false; },
  () => {},
);
