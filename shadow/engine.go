package shadow

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/shadow/exchange"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
)

// TooLarge is why a request has no pattern whose body is longer than an exchange holds.
const TooLarge pattern.Reason = "large"

// storePeriod is how often the counts are stored: an engine that is killed loses those since.
const storePeriod = time.Second

// Engine counts the patterns of exchanges.
type Engine struct {
	reader *pattern.Reader
	counts *pattern.Collector
	file   string
}

// NewEngine returns an engine that stores its counts in a file, which it replaces as a whole.
func NewEngine(r *pattern.Reader, file string) *Engine {
	return &Engine{reader: r, counts: pattern.NewCollector(), file: file}
}

// Run counts the exchanges whose frames come from a pipe, until it ends.
func (e *Engine) Run(pipe io.Reader) error {
	frames, stored := exchange.NewReader(pipe), time.Now()
	for {
		x, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return e.store()
		}
		if err != nil {
			return errors.Join(fmt.Errorf("read exchanges: %w", err), e.store())
		}
		e.add(x)
		if time.Since(stored) >= storePeriod {
			if err := e.store(); err != nil {
				return err
			}
			stored = time.Now()
		}
	}
}

// add counts an exchange.
func (e *Engine) add(x *exchange.Exchange) {
	_, operation, _ := strings.Cut(x.Target, ".")
	answer := pattern.Answer{Bytes: x.Answer.Size, Took: x.Duration, Failed: x.Status != 200}
	body, err := unpack(&x.Request)
	if err != nil {
		e.counts.Add(pattern.Request{Skipped: TooLarge}, answer)
		return
	}
	e.counts.Add(e.reader.Of(operation, body), answer)
}

var errNotWhole = errors.New("the body was not taken along")

// unpack returns the text of a body.
func unpack(b *exchange.Body) ([]byte, error) {
	if !b.Whole() {
		return nil, errNotWhole
	}
	var unpacked io.Reader
	var err error
	switch b.Encoding {
	case "gzip":
		unpacked, err = gzip.NewReader(bytes.NewReader(b.Bytes))
	case "deflate":
		unpacked, err = zlib.NewReader(bytes.NewReader(b.Bytes))
	default:
		return b.Bytes, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(unpacked, exchange.MaxBody+1))
	if err == nil && len(text) > exchange.MaxBody {
		err = errNotWhole
	}
	return text, err
}

// store stores the counts.
func (e *Engine) store() error {
	data, err := json.Marshal(e.counts.Snapshot())
	if err == nil {
		err = os.WriteFile(e.file+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(e.file+".new", e.file)
	}
	if err != nil {
		return fmt.Errorf("store counts: %w", err)
	}
	return nil
}

// RemoveCounts removes a directory with what engines have stored, but nothing else that it may
// have.
func RemoveCounts(dir string) error {
	for _, pattern := range []string{"*.json", "*.json.new"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		for _, file := range files {
			err = errors.Join(err, os.Remove(file))
		}
		if err != nil {
			return fmt.Errorf("remove counts: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil {
		return fmt.Errorf("remove counts: %w", err)
	}
	return nil
}

// CountsOf returns what the engines of a run have stored in a directory, together.
func CountsOf(dir string) (*pattern.Snapshot, error) {
	all := pattern.NewCollector().Snapshot()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read counts: %w", err)
		}
		one, err := pattern.Parse(data)
		if err != nil {
			return nil, err
		}
		all.Merge(one)
	}
	return all, nil
}
