// This browser remembers choices such as voice, speed, models and formats. It never stores a text, which may be private.
// Without permission for storage, the settings hold for this page only.

const ITEM = "hob.page";

/** Steps of the slider: fine around the voice's own rate, coarse towards the API's limits. */
export const SPEEDS = [
  0.25, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
  1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 1.75, 2, 3, 4,
];

export function recall() {
  try {
    return JSON.parse(localStorage.getItem(ITEM)) ?? {};
  } catch {
    return {};
  }
}

export function remember(change) {
  try {
    localStorage.setItem(ITEM, JSON.stringify({ ...recall(), ...change }));
  } catch {
    // Storage is not allowed: the settings hold for this page only.
  }
}
