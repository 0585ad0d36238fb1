package demo

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// separate gives the process a group of its own: a console event goes to a group, and must not
// reach this process.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// terminate asks a process to finish its work and end: Go's runtime turns Ctrl-Break into
// os.Interrupt there.
func terminate(p *os.Process) error {
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid))
}

// wasKilled reports whether a process ended by Process.Kill, which ends it with exit code 1. Here
// that is also the code of a command that failed.
func wasKilled(s *os.ProcessState) bool { return s.ExitCode() == 1 }
