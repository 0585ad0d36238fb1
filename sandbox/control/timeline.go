package control

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"go.yaml.in/yaml/v4"
)

// Timeline is a list of commands, each with its time.
type Timeline struct{ steps []step }

// step is one command of a timeline.
type step struct {
	at    time.Duration // after the start, on the sandbox's clock
	name  string
	args  []byte // a JSON object
	entry int    // number in the file, from 1
}

// ReadTimeline reads a YAML list. Each entry has "at" (a duration after the start, on the sandbox's
// clock), "do" (a command's name), the command's arguments and, to repeat it, "every" (a duration)
// and "count".
func ReadTimeline(path string) (*Timeline, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read timeline: %w", err)
	}
	t, err := ParseTimeline(text)
	if err != nil {
		return nil, fmt.Errorf("read timeline %s: %w", path, err)
	}
	return t, nil
}

// ParseTimeline parses the content of a file, as ReadTimeline does.
func ParseTimeline(text []byte) (*Timeline, error) {
	var entries []map[string]any
	if err := yaml.Unmarshal(text, &entries); err != nil {
		return nil, err
	}
	t := &Timeline{}
	for i, e := range entries {
		if err := t.read(e, i+1); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	sort.SliceStable(t.steps, func(i, j int) bool { return t.steps[i].at < t.steps[j].at })
	return t, nil
}

// read adds the steps of one entry of the file.
func (t *Timeline) read(e map[string]any, entry int) error {
	name, ok := e["do"].(string)
	if !ok {
		return fmt.Errorf(`no command: want "do"`)
	}
	at, err := spanOf(e, "at")
	if err != nil {
		return err
	}
	every, count, err := repeat(e, name)
	if err != nil {
		return err
	}
	delete(e, "do")
	args, err := json.Marshal(e)
	if err != nil {
		return err
	}
	for i := range count {
		t.steps = append(t.steps, step{at: at + time.Duration(i)*every, name: name, args: args, entry: entry})
	}
	return nil
}

// repeat reads the arguments "every" and "count", and removes them. rotate_every keeps its own
// "every".
func repeat(e map[string]any, name string) (every time.Duration, count int, err error) {
	count = 1
	if n, ok := e["count"]; ok {
		if count, ok = n.(int); !ok || count < 1 {
			return 0, 0, fmt.Errorf("count %v: want a number of at least 1", n)
		}
		delete(e, "count")
	}
	if name == "rotate_every" {
		return 0, count, nil
	}
	every, err = spanOf(e, "every")
	if err == nil && count > 1 && every <= 0 {
		err = fmt.Errorf("count %d without every", count)
	}
	return every, count, err
}

// spanOf reads a duration from a field, and removes the field. A missing field is 0.
func spanOf(e map[string]any, field string) (time.Duration, error) {
	v, ok := e[field]
	if !ok {
		return 0, nil
	}
	delete(e, field)
	d, err := time.ParseDuration(fmt.Sprint(v))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	return d, nil
}

// Run runs each command at its time and returns after the last one, or with the error of the first
// that fails.
func (t *Timeline) Run(ctx context.Context, c *Console) error {
	start := c.Clock.Now()
	for _, s := range t.steps {
		if err := c.Clock.Until(ctx, start.Add(s.at)); err != nil {
			return fmt.Errorf("timeline entry %d: %w", s.entry, err)
		}
		if _, err := c.Do(ctx, s.name, s.args); err != nil {
			return fmt.Errorf("timeline entry %d: %w", s.entry, err)
		}
	}
	return nil
}
