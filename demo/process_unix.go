//go:build unix

package demo

import (
	"os"
	"os/exec"
	"syscall"
)

// separate does nothing: each process gets signals of its own.
func separate(*exec.Cmd) {}

// terminate asks a process to finish its work and end.
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// wasKilled reports whether a process ended by Process.Kill.
func wasKilled(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
