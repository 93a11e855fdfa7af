// The microphone: which there are, how to open one, and in plain words why a browser refuses.

/** Why this page gets no microphone, or null. */
export function whyNoMicrophone() {
  const port = location.port ? `:${location.port}` : "";
  if (!window.isSecureContext) {
    return `The browser gives the microphone only to pages of this computer, or over HTTPS. Open http://localhost${port} on the computer that runs hob. `
      + `From another one, run "ssh -L ${location.port || 80}:localhost:${location.port || 80} ${location.hostname}" and open http://localhost${port} there, or start hob with "hob serve --tls". `
      + "A certificate of your own (--tls-certificate) or a reverse proxy with HTTPS works, too.";
  }
  return navigator.mediaDevices?.getUserMedia ? null : "This browser has no access to the microphone.";
}

/** Asks the user. Must run inside the click or key press. Throws an Error with a sentence for the user. */
export async function openMicrophone(deviceId) {
  const device = deviceId ? { deviceId: { ideal: deviceId } } : {};
  const audio = { ...device, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
  try {
    return await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    throw new Error(REFUSALS[error.name] ?? `The microphone does not start: ${error.message}`);
  }
}

/** The names are empty until the browser has allowed the microphone once. @returns {Promise<{id: string, name: string}[]>} */
export async function listMicrophones() {
  const devices = await navigator.mediaDevices.enumerateDevices();
  return devices.filter(({ kind, label }) => kind === "audioinput" && label).map(({ deviceId, label }) => ({ id: deviceId, name: label }));
}

const REFUSALS = {
  NotAllowedError: "The browser does not let this page use the microphone. Allow it in the browser's settings for this page, then try again.",
  NotFoundError: "The browser finds no microphone. Connect one, then try again.",
  NotReadableError: "The microphone does not start. Another program may be using it.",
};
