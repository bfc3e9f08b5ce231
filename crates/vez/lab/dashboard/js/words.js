// @ts-check
// What the page says, in both languages.

import { language, number } from "../../js/i18n.js";

const en = {
  title: "vez: locks, elections and leases",
  skip: "Skip to the locks",
  lab: "Lab",
  switchLanguage: "Português",
  theme: "Light or dark",
  plots: "The last minutes",
  locks: "Locks",
  elections: "Elections",
  leases: "Leases that end next",
  members: "Members",
  history: "What happened",
  search: "Search by name",
  order: "Order",
  byWaiting: "most waited for first",
  byName: "by name",
  requests: "requests per second",
  grants: "turns given per second",
  sync: "disk, ms (99 %)",
  wait: "wait for a turn, ms (mean)",
  request: "answers, ms (99 %)",
  none: "none yet",
  most: (/** @type {string} */ most) => `at most ${most}`,
  state: (/** @type {number} */ held, /** @type {number} */ waiting, /** @type {number} */ watchers) =>
    `${number(held)} held · ${number(waiting)} waiting · ${number(watchers)} watches`,
  up: (/** @type {string} */ time) => `up ${time}`,
  connecting: "asking the server…",
  offline: (/** @type {string} */ time) => `The server does not answer; what you see is ${time} old.`,
  trouble: (/** @type {string} */ why) => `The server is not ready: ${why}.`,
  held: (/** @type {string} */ time) => `held for ${time}`,
  leads: (/** @type {string} */ time) => `leads for ${time}`,
  waits: (/** @type {number} */ count) => (count === 1 ? "1 waits" : `${number(count)} wait`),
  nobody: "nobody waits",
  more: (/** @type {number} */ count) => `and ${number(count)} more`,
  fence: "fence",
  lease: "lease",
  left: (/** @type {string} */ left, /** @type {string} */ ttl) => `${left} left of ${ttl}`,
  expired: "over",
  unnamed: (/** @type {string} */ lease) => `lease ${lease}`,
  atLeast: (/** @type {string} */ time) => `≥ ${time}`,
  keys: (/** @type {number} */ count) => `and ${count} more`,
  noKeys: "no keys",
  release: "Release",
  depose: "Depose",
  previous: "Previous",
  next: "Next",
  shown: (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ total) =>
    `${number(from)}–${number(to)} of ${number(total)}`,
  noLocks: "Nobody holds a lock. Make the first one:",
  noElections: "Nobody leads anything. Stand for election:",
  noneFound: "No name holds that text.",
  noLeases: "There are no leases.",
  countedElsewhere: "The leader counts their time: ask there.",
  noHistory: "Nothing has happened since the server was started.",
  leader: "leader",
  follower: "follower",
  learner: "learner",
  asked: "you ask this one",
  term: "term",
  revision: "revision",
  keysTotal: "keys",
  disk: "on disk",
  version: "version",
  copy: "Copy",
  copied: "Copied.",
  dialogTitle: (/** @type {string} */ name) => `Release ${name}?`,
  deposeTitle: (/** @type {string} */ name) => `Depose the leader of ${name}?`,
  close: "Close",
  cancel: "Keep it",
  confirm: "Release it now",
  confirmDepose: "Depose it now",
  hurtHolder: (/** @type {string} */ who, /** @type {string} */ time) =>
    `${who} has had it for ${time} and is not asked. If it runs under vez lock or vez elect it is told and stopped; ` +
    `another client may go on believing that it holds it.`,
  hurtNext: (/** @type {string} */ who) => `${who} gets it at once, perhaps while the other still works.`,
  hurtNobody: "Nobody waits for it: it is free then.",
  hurtFence: (/** @type {number} */ fence) =>
    `Only this grant, with fence ${fence}, is released; if it is over meanwhile, nothing happens.`,
  needToken: "To release anything you need the token.",
  whereToken:
    "The server printed an address with it when it was started; it is also in the file dashboard-token in its data directory.",
  token: "Token",
  useToken: "Use it",
  wrongToken: "That is not the server's token.",
  released: (/** @type {string} */ name) => `${name} was released.`,
  gone: "It was over before; nothing was released.",
  failed: (/** @type {string} */ why) => `It was not released: ${why}`,
  ago: (/** @type {string} */ time) => `${time} ago`,
  whats: {
    granted: "granted",
    "handed-over": "handed over",
    "ended-asked": "released",
    "ended-by-hand": "released by hand",
    "ended-lease-expired": "taken away: lease expired",
    "ended-lease-revoked": "taken away: lease revoked",
    "left-asked": "stopped waiting",
    "left-by-hand": "put out of the line by hand",
    "left-lease-expired": "lost its place: lease expired",
    "left-lease-revoked": "lost its place: lease revoked",
  },
  afterWait: (/** @type {string} */ time) => `after waiting ${time}`,
  afterHold: (/** @type {string} */ time) => `after ${time}`,
};

/** @type {typeof en} */
const pt = {
  title: "vez: travas, eleições e concessões",
  skip: "Ir para as travas",
  lab: "Laboratório",
  switchLanguage: "English",
  theme: "Claro ou escuro",
  plots: "Os últimos minutos",
  locks: "Travas",
  elections: "Eleições",
  leases: "Concessões que acabam primeiro",
  members: "Membros",
  history: "O que aconteceu",
  search: "Procurar pelo nome",
  order: "Ordem",
  byWaiting: "as mais esperadas primeiro",
  byName: "por nome",
  requests: "pedidos por segundo",
  grants: "vezes dadas por segundo",
  sync: "disco, ms (99 %)",
  wait: "espera pela vez, ms (média)",
  request: "respostas, ms (99 %)",
  none: "ainda nada",
  most: (most) => `no máximo ${most}`,
  state: (held, waiting, watchers) =>
    `${number(held)} em posse · ${number(waiting)} à espera · ${number(watchers)} observações`,
  up: (time) => `no ar há ${time}`,
  connecting: "perguntando ao servidor…",
  offline: (time) => `O servidor não responde; o que se vê é de ${time} atrás.`,
  trouble: (why) => `O servidor não está pronto: ${why}.`,
  held: (time) => `em posse há ${time}`,
  leads: (time) => `lidera há ${time}`,
  waits: (count) => (count === 1 ? "1 espera" : `${number(count)} esperam`),
  nobody: "ninguém espera",
  more: (count) => `e mais ${number(count)}`,
  fence: "cerca",
  lease: "concessão",
  left: (left, ttl) => `restam ${left} de ${ttl}`,
  expired: "acabou",
  unnamed: (lease) => `concessão ${lease}`,
  atLeast: (time) => `≥ ${time}`,
  keys: (count) => `e mais ${count}`,
  noKeys: "sem chaves",
  release: "Liberar",
  depose: "Destituir",
  previous: "Anterior",
  next: "Próxima",
  shown: (from, to, total) => `${number(from)}–${number(to)} de ${number(total)}`,
  noLocks: "Ninguém tem uma trava. Faça a primeira:",
  noElections: "Ninguém lidera nada. Candidate-se:",
  noneFound: "Nenhum nome tem esse texto.",
  noLeases: "Não há concessões.",
  countedElsewhere: "Quem conta o tempo delas é o líder: pergunte lá.",
  noHistory: "Nada aconteceu desde que o servidor começou.",
  leader: "líder",
  follower: "seguidor",
  learner: "aprendiz",
  asked: "o que responde aqui",
  term: "mandato",
  revision: "revisão",
  keysTotal: "chaves",
  disk: "em disco",
  version: "versão",
  copy: "Copiar",
  copied: "Copiado.",
  dialogTitle: (name) => `Liberar ${name}?`,
  deposeTitle: (name) => `Destituir o líder de ${name}?`,
  close: "Fechar",
  cancel: "Deixar como está",
  confirm: "Liberar agora",
  confirmDepose: "Destituir agora",
  hurtHolder: (who, time) =>
    `${who} a tem há ${time} e não é consultado. Se roda sob vez lock ou vez elect, é avisado e parado; ` +
    `outro cliente pode continuar acreditando que a tem.`,
  hurtNext: (who) => `${who} a recebe na hora, talvez enquanto o outro ainda trabalha.`,
  hurtNobody: "Ninguém espera por ela: fica livre.",
  hurtFence: (fence) => `Só esta posse, com a cerca ${fence}, é liberada; se ela acabar antes, nada acontece.`,
  needToken: "Para liberar algo é preciso o token.",
  whereToken:
    "O servidor imprimiu um endereço com ele ao começar; está também no arquivo dashboard-token do seu diretório de dados.",
  token: "Token",
  useToken: "Usar",
  wrongToken: "Esse não é o token do servidor.",
  released: (name) => `${name} foi liberada.`,
  gone: "Já tinha acabado; nada foi liberado.",
  failed: (why) => `Não foi liberada: ${why}`,
  ago: (time) => `há ${time}`,
  whats: {
    granted: "dada",
    "handed-over": "passada adiante",
    "ended-asked": "liberada",
    "ended-by-hand": "liberada à mão",
    "ended-lease-expired": "tirada: a concessão acabou",
    "ended-lease-revoked": "tirada: a concessão foi revogada",
    "left-asked": "deixou de esperar",
    "left-by-hand": "tirado da fila à mão",
    "left-lease-expired": "perdeu o lugar: a concessão acabou",
    "left-lease-revoked": "perdeu o lugar: a concessão foi revogada",
  },
  afterWait: (time) => `depois de esperar ${time}`,
  afterHold: (time) => `depois de ${time}`,
};

export function t() {
  return language() === "pt" ? pt : en;
}

/** A length of time as people say it: `0.4 s`, `42 s`, `3 min 5 s`, `2 h 10 min`, `5 d 3 h`. @param {number} ms */
export function span(ms) {
  const seconds = Math.floor(ms / 1000);
  if (ms < 10) return `${number(ms, 1)} ms`;
  if (ms < 1000) return `${number(ms, 0)} ms`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${number(Math.floor(seconds / 86_400))} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

/** @param {import("./types.js").Lapse} lapse */
export function lapse({ ms, least }) {
  return least ? t().atLeast(span(ms)) : span(ms);
}

/** Who stands somewhere, as far as it says. @param {{who: string, lease: string}} standing */
export function whoIs({ who, lease }) {
  return who || t().unnamed(lease);
}
