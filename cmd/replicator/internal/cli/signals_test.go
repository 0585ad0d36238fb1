package cli

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
)

// TestSignalsAreNotedBeforeTheyEndAnything: the log then begins its shutdown with the reason.
func TestSignalsAreNotedBeforeTheyEndAnything(t *testing.T) {
	var s Signals
	var order []string
	defer s.Note(func(name string, again bool) { order = append(order, fmt.Sprint(name, " ", again)) })()
	got := make(chan os.Signal, 2)
	got <- syscall.SIGTERM
	got <- os.Interrupt
	s.follow(got, func() { order = append(order, "cancel") }, func(os.Signal) { order = append(order, "end") })
	want := []string{"SIGTERM false", "cancel", "interrupt true", "end"}
	if !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
	(*Signals)(nil).Note(nil)()
}
