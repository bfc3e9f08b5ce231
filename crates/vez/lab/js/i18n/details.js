// @ts-check
// Why a promise is broken, as the simulator says it in English, said in Portuguese.

/** @type {[RegExp, string][]} */
const SAYINGS = [
  [/^(\S+) entered while (\S+) was inside$/, "$1 entrou enquanto $2 estava dentro"],
  [/^(\S+) was let in without waiting for it$/, "$1 foi admitido sem estar esperando"],
  [
    /^nobody is inside, nothing more can happen, and still waiting: (.+)$/,
    "ninguém está dentro, nada mais pode acontecer, e ainda esperam: $1",
  ],
  [/^waiting for ever: (.+)$/, "esperam para sempre: $1"],
  [/^still waiting when the run was cut off: (.+)$/, "ainda esperavam quando a execução foi cortada: $1"],
  [
    /^at most (\d+) × another entered while one waited(?:, (\d+) promised)?$/,
    "no máximo $1 × outro entrou enquanto um esperava",
  ],
  [
    /^(\S+) .* (\d+) entries of others; at most (\d+) promised$/,
    "$1 viu $2 entradas de outros; o prometido era no máximo $3",
  ],
  [/^(\S+) entered without a fence$/, "$1 entrou sem cerca"],
  [
    /^(\S+) entered with fence (\S+), but (\S+) was in use before it asked$/,
    "$1 entrou com a cerca $2, mas a $3 já estava em uso antes do pedido",
  ],
  [/^(\S+) entered with fence (\S+), which (\S+) had been given$/, "$1 entrou com a cerca $2, que fora dada a $3"],
  [/^(\S+) leads term (\S+), which (\S+) was elected to lead$/, "$1 lidera o mandato $2, para o qual $3 fora eleito"],
  [
    /^(\S+) declared itself leader while (\S+) considers itself leader$/,
    "$1 declarou-se líder enquanto $2 se considera líder",
  ],
  [/^an election was asked for by (.+) and nobody came to lead$/, "$1 pediu uma eleição e ninguém chegou a liderar"],
  [/^(\S+) leads, but (\S+) is the (.+) that is up$/, "$1 lidera, mas $2 é quem devia, entre os que estão no ar"],
  [/^(\S+) leads, but not everyone was told: (.+)$/, "$1 lidera, mas nem todos souberam: $2"],
  [/^(\S+) leads, but (\S+) follows (\S+)$/, "$1 lidera, mas $2 segue $3"],
  [/^(\S+) took over from (\S+), which had not failed$/, "$1 tomou o lugar de $2, que não tinha falhado"],
];

/** In Portuguese where it is known how, as it is otherwise. @param {string} detail */
export function inPortuguese(detail) {
  for (const [pattern, words] of SAYINGS) {
    if (pattern.test(detail)) return detail.replace(pattern, words).replace(/ and (\d+) more$/, " e mais $1");
  }
  return detail;
}
