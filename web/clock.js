// Times of a recording as a person reads them: `0:07`, `12:34`, `1:02:03`.

/** Rounded down, as a clock shows it. */
export function clockText(seconds) {
  const whole = Math.floor(seconds + 0.001);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const rest = twoDigits(whole % 60);
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${rest}` : `${minutes}:${rest}`;
}

function twoDigits(number) {
  return String(number).padStart(2, "0");
}
