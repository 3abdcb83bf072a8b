// @ts-check
// An executor that accepts every order and never answers: no report, no deadline of its own, no broken connection.
export default {
  fetch() {
    // With a timer pending the runtime cannot tell that this call will never be answered, and does not end it.
    setInterval(() => {}, 1000);
    return new Promise(() => {});
  },
};
