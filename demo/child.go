package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// Child is the replicator as a process of its own, so that it can be killed as the kernel would
// kill it.
type Child struct {
	Args []string // of this program
	Env  []string
	Log  *os.File // its standard error

	mu  sync.Mutex // covers cmd
	cmd *exec.Cmd
}

// Start starts the process, or starts it again after Kill.
func (c *Child) Start() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, c.Args...) //nolint:noctx // Kill and Stop end it, not a context
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdout, cmd.Stderr = c.Log, c.Log
	separate(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start replicator: %w", err)
	}
	c.mu.Lock()
	c.cmd = cmd
	c.mu.Unlock()
	return nil
}

// Kill kills the process, with SIGKILL where there are signals, and waits until it is gone. A
// process that has ended by itself is an error.
func (c *Child) Kill() error {
	cmd := c.take()
	if cmd == nil {
		return errors.New("the replicator does not run")
	}
	killed := cmd.Process.Kill()
	err := cmd.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) && wasKilled(ended.ProcessState) {
		return nil
	}
	return fmt.Errorf("the replicator ended before it was killed: %w", errors.Join(killed, err))
}

// Stop asks the process to finish its work, with SIGTERM or Ctrl-Break, and waits until the process
// is gone; it kills the process when ctx ends first.
func (c *Child) Stop(ctx context.Context) error {
	cmd := c.take()
	if cmd == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	_ = terminate(cmd.Process) // a process that is gone already: Wait returns how it ended
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("stop replicator: %w", err)
	}
	return nil
}

// take returns the running process and drops it, so that only one caller waits for it; nil if
// none runs.
func (c *Child) take() *exec.Cmd {
	c.mu.Lock()
	defer c.mu.Unlock()
	cmd := c.cmd
	c.cmd = nil
	return cmd
}
