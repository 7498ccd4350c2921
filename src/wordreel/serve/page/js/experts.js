// What each expert looks for, in words that people know.

const WORDS = {
  seen: "overall picture", appearance: "things seen", motion: "actions", sound: "sounds", speech: "speech", ocr: "text on screen",
  faces: "faces", shots: "cuts", "speech words": "words spoken", "ocr words": "words on screen",
};

export function expertWords(name) {
  return WORDS[name] ?? name;
}
