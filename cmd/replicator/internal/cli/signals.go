package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signals ends the context of a command with the first interrupt or SIGTERM, and the process with
// the second. The nil Signals notes nothing.
type Signals struct {
	mu   sync.Mutex
	note func(name string, again bool)
}

// Note has f called with the name of each signal, before it has its effect, until undo is called.
func (s *Signals) Note(f func(name string, again bool)) (undo func()) {
	if s == nil {
		return func() {}
	}
	s.set(f)
	return func() { s.set(nil) }
}

func (s *Signals) set(f func(name string, again bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note = f
}

// Context returns a context that the first signal ends.
func (s *Signals) Context(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go s.follow(got, cancel, endProcess)
	return ctx
}

// follow drains and saves on the first signal, and ends the process at once on the second.
func (s *Signals) follow(got <-chan os.Signal, cancel func(), end func(os.Signal)) {
	s.noted(<-got, false)
	cancel()
	again := <-got
	signal.Reset() // a third one ends the process even if the log cannot be written
	s.noted(again, true)
	end(again)
}

func (s *Signals) noted(sig os.Signal, again bool) {
	s.mu.Lock()
	note := s.note
	s.mu.Unlock()
	if note != nil {
		note(signalName(sig), again)
	}
}

// signalName returns the name of a signal as people type it.
func signalName(sig os.Signal) string {
	switch sig {
	case syscall.SIGTERM:
		return "SIGTERM"
	case os.Interrupt:
		return "interrupt"
	}
	return sig.String()
}

// endProcess ends the process by a signal, as if it had not been caught.
func endProcess(sig os.Signal) {
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(sig) == nil {
		return // it ends as soon as the signal is delivered
	}
	os.Exit(codeRuntime) // Windows sends no signals
}
