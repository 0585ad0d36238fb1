// Package steps describes for people what a program does: step by step for one item or change
// (`explain`), by rule and row (`check`), and for a sample of items. The pipeline does not use it.
package steps
