/** The part of the time that is shown, in nanoseconds since the session's start. */
export interface View {
  from: number;
  to: number;
}
