package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/failure"
)

const (
	configName      = "tailrace.yaml"
	certificateName = "certificate.json"
	quietTime       = "2s" // in which nothing may have been written before the fence
)

// Certified is the cutover at the end of a demo.
type Certified struct {
	Target string `json:"target"`
	ID     string `json:"id"`
	Items  int64  `json:"items"`  // that were compared under the fence, and are equal
	SHA256 string `json:"sha256"` // of the certificate
	File   string `json:"file"`   // removed with its directory, unless the options name that
}

// Conclude compares all tables, and cuts the catalogue over meanwhile: no writer is left.
// Without a difference the summary has the cutover.
func (s *Stage) Conclude(ctx context.Context) (*Summary, error) {
	var sum *Summary
	var certified *Certified
	var failed, refused error
	var both errgroup.Group
	both.Go(func() error { sum, failed = s.compare(ctx); return nil })
	both.Go(func() error { certified, refused = s.certify(ctx); return nil })
	_ = both.Wait()
	switch {
	case failed != nil:
		return nil, fmt.Errorf("compare: %w", failed)
	case !sum.Equal: // which is why the cutover is refused
		return sum, nil
	case refused != nil:
		return nil, refused
	}
	sum.Cutover = certified
	return sum, nil
}

// certify cuts the catalogue over, as a user would: it raises the fence, and gets and checks the
// certificate. The replicator runs on.
func (s *Stage) certify(ctx context.Context) (*Certified, error) {
	s.o.Say("replicator cutover --table " + Table + " --quiet " + quietTime)
	c := &Certified{Target: Target, File: filepath.Join(s.dir, certificateName)}
	config := []string{"--config", filepath.Join(s.dir, configName), "--json"}
	cut := append([]string{"cutover", "--table", Table, "--quiet", quietTime, "--out", c.File}, config...)
	if err := s.command(ctx, c, cut...); err != nil {
		return nil, err
	}
	s.o.Say("replicator cutover --check " + certificateName)
	return c, s.command(ctx, c, append([]string{"cutover", "--check", c.File}, config...)...)
}

// command runs a command of this program, shows its steps, and decodes its JSON into result.
func (s *Stage) command(ctx context.Context, result any, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	var out bytes.Buffer
	steps, errs := io.Pipe()
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout, cmd.Stderr = &out, errs
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		for lines := bufio.NewScanner(steps); lines.Scan(); {
			s.o.Say("  " + lines.Text())
		}
		_, _ = io.Copy(io.Discard, steps) // behind a line that is too long
	}()
	err = cmd.Run()
	_ = errs.Close()
	<-shown
	if err != nil {
		return failure.With(failure.Different, "its steps above say why; `replicator demo --keep DIR` keeps the log",
			fmt.Errorf("replicator %s: %w", args[0], err))
	}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		return fmt.Errorf("read what %s printed: %w", args[0], err)
	}
	return nil
}
