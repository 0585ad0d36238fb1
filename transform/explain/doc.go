// Package explain shows people what a program does: step by step for one item or change (`explain`), by rule and row
// (`check`), and what a sample of items says about a mapping. Nothing here is on the way of a change.
package explain
