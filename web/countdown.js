// Counts down until hob's `Retry-After`. Waiting without a sign would look like a hang.

/** @returns {() => void} stops the countdown */
export function countDown(element, seconds) {
  const until = performance.now() + seconds * 1000;
  let timer = 0;
  const show = () => {
    const left = Math.ceil((until - performance.now()) / 1000);
    // It is part of an alert, and a screen reader would read the whole alert again each second.
    element.ariaLive = left > 0 ? "off" : "polite";
    element.textContent = left > 0 ? `Try again in ${left} s.` : "Try again now.";
    if (left <= 0) clearInterval(timer);
  };
  timer = setInterval(show, 1000);
  show();
  return () => clearInterval(timer);
}
