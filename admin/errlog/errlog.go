// Package errlog keeps the last warnings and errors of each table, for its page: a few lines per table, in memory.
//
// It takes message, reason, error, hint and code of a line and nothing else. Our logs have no item and no key above
// Debug, so the page has none.
package errlog

import (
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"
)

const (
	linesKept = 20
	longest   = 500 // bytes of a line
)

// Line is a warning or an error.
type Line struct {
	At    time.Time
	Error bool // else a warning
	Text  string
	Times int // how often it was logged in a row
}

// Log keeps lines. Its zero value is ready for use, by any number of goroutines.
type Log struct {
	mu    sync.Mutex // covers lines
	lines map[string][]Line
}

// Of returns the lines of a table, the newest first.
func (l *Log) Of(table string) []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := slices.Clone(l.lines[table])
	slices.Reverse(lines)
	return lines
}

// Beside returns a core that writes to another one and keeps what is at least a warning.
func (l *Log) Beside(to zapcore.Core) zapcore.Core { return zapcore.NewTee(to, &core{log: l}) }

func (l *Log) add(table string, x Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines[table]
	if n := len(lines); n > 0 && lines[n-1].Text == x.Text {
		lines[n-1].At = x.At
		lines[n-1].Times++
		return
	}
	if len(lines) == linesKept {
		lines = slices.Delete(lines, 0, 1)
	}
	if l.lines == nil {
		l.lines = map[string][]Line{}
	}
	l.lines[table] = append(lines, x)
}

// core is the part of a logger that keeps lines.
type core struct {
	log   *Log
	table string // that the logger belongs to; "": none
}

func (*core) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{log: c.log, table: tableIn(fields, c.table)}
}

func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	table := tableIn(fields, c.table)
	if table == "" {
		return nil
	}
	said := zapcore.NewMapObjectEncoder()
	text := e.Message
	for _, f := range fields {
		if slices.Contains([]string{"reason", "error", "hint", "code"}, f.Key) {
			f.AddTo(said)
			if s, ok := said.Fields[f.Key].(string); ok && s != "" {
				text += "; " + f.Key + ": " + s
			}
		}
	}
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + " …"
	}
	c.log.add(table, Line{At: e.Time.UTC(), Error: e.Level > zapcore.WarnLevel, Text: text, Times: 1})
	return nil
}

func (*core) Sync() error { return nil }

// tableIn returns the table that fields name, or else.
func tableIn(fields []zapcore.Field, other string) string {
	for _, f := range fields {
		if f.Key == "table" && f.Type == zapcore.StringType {
			return f.String
		}
	}
	return other
}
