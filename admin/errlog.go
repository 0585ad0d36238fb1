package admin

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

// ErrorLine is a warning or an error.
type ErrorLine struct {
	At    time.Time
	Error bool // else a warning
	Text  string
	Times int // how often it was logged in a row
}

// ErrorLog keeps the last warnings and errors of each table, for its page: a few lines per table,
// in memory. It takes message, reason, error, hint and code of a line and nothing else: our logs
// have no item and no key above Debug, so the page has none. Its zero value is ready for use, by
// any number of goroutines.
type ErrorLog struct {
	mu    sync.Mutex // covers lines
	lines map[string][]ErrorLine
}

// Of returns the lines of a table, the newest first.
func (l *ErrorLog) Of(table string) []ErrorLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := slices.Clone(l.lines[table])
	slices.Reverse(lines)
	return lines
}

// Beside returns a core that writes to another one and keeps what is at least a warning.
func (l *ErrorLog) Beside(to zapcore.Core) zapcore.Core {
	return zapcore.NewTee(to, &errorCore{log: l})
}

func (l *ErrorLog) add(table string, x ErrorLine) {
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
		l.lines = map[string][]ErrorLine{}
	}
	l.lines[table] = append(lines, x)
}

// errorCore is the part of a logger that keeps lines.
type errorCore struct {
	log   *ErrorLog
	table string // that the logger belongs to; "": none
}

func (*errorCore) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

func (c *errorCore) With(fields []zapcore.Field) zapcore.Core {
	return &errorCore{log: c.log, table: tableIn(fields, c.table)}
}

func (c *errorCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *errorCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
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
	c.log.add(table, ErrorLine{At: e.Time.UTC(), Error: e.Level > zapcore.WarnLevel, Text: text, Times: 1})
	return nil
}

func (*errorCore) Sync() error { return nil }

// tableIn returns the table that fields name, or else.
func tableIn(fields []zapcore.Field, other string) string {
	for _, f := range fields {
		if f.Key == "table" && f.Type == zapcore.StringType {
			return f.String
		}
	}
	return other
}
