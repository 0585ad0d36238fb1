package shadow

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// mismatchLine is a line of the file of mismatches: a difference as `verify --differences` writes it,
// so that `repair --from` reads it, with the pattern of the read that showed it.
type mismatchLine struct {
	*report.Difference
	Pattern string `json:"pattern"`
}

// MismatchFile appends mismatches to a file as lines of JSON; without a name they are only counted.
// They have keys, so the file is the user's alone.
func MismatchFile(
	name string, tables *catalog.Catalog,
) (write func(replay.Mismatch) error, closeFile func() error, err error) {
	if name == "" {
		return func(replay.Mismatch) error { return nil }, func() error { return nil }, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = ownAlone(f)
	}
	if err != nil {
		return nil, nil, failure.With(failure.Unready, "name a file that can be written with --mismatches",
			fmt.Errorf("open file of mismatches: %w", err))
	}
	targets := map[string]string{}
	for _, t := range tables.Tables {
		targets[t.Source] = t.Target
	}
	lines := &mismatchLines{to: f}
	return func(m replay.Mismatch) error { return lines.write(lineOf(&m, targets[m.Table])) }, f.Close, nil
}

// ownAlone takes the permissions of others from a file that was there before. It closes the file if
// it cannot.
func ownAlone(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		_ = f.Close()
	}
	return err
}

// lineOf returns the line of a mismatch in rows of a target.
func lineOf(m *replay.Mismatch, target string) mismatchLine {
	v := verify.Verdict{Status: verify.Different, Key: m.Key, Rows: m.Rows}
	for _, kind := range m.Kinds {
		v.Kinds = append(v.Kinds, verify.Kind(kind))
	}
	return mismatchLine{report.OfItem(m.Table, target, &v), m.Pattern}
}

// mismatchLines writes each mismatch as one line, with one call: two engines may append to a file.
type mismatchLines struct {
	to   io.Writer
	torn bool // the last line has no end
}

func (l *mismatchLines) write(x mismatchLine) error {
	line, err := json.Marshal(x)
	if err != nil {
		return fmt.Errorf("write mismatch: %w", err)
	}
	line = append(line, '\n')
	if l.torn {
		line = append([]byte("\n"), line...)
	}
	n, err := l.to.Write(line)
	if n > 0 {
		l.torn = err != nil
	}
	if err != nil {
		return fmt.Errorf("write mismatch: %w", err)
	}
	return nil
}
