package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// bar is a moving bar on a terminal, with room for lines above it.
type bar struct {
	all   *mpb.Progress
	one   *mpb.Bar
	total int64
	text  atomic.Value // string, right of the bar
}

// newBar draws a bar of total steps on out.
func newBar(out io.Writer, name string, total int64) *bar {
	b := &bar{total: total}
	b.text.Store("")
	b.all = mpb.New(mpb.WithOutput(out), mpb.WithWidth(24), mpb.WithRefreshRate(100*time.Millisecond),
		mpb.WithAutoRefresh())
	b.one = b.all.AddBar(total, mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + b.text.Load().(string) })))
	return b
}

// set moves the bar. It stays until close, even if there are more steps than total.
func (b *bar) set(step int64, text string) {
	b.text.Store(text)
	b.one.SetCurrent(min(step, b.total-1))
}

// say writes a line above the bar.
func (b *bar) say(line string) { _, _ = fmt.Fprintln(b.all, line) }

// close removes the bar. Later output takes its place.
func (b *bar) close() {
	b.one.Abort(true)
	b.all.Wait()
}

// showsBars reports whether stderr may show a moving bar: it is a terminal, and neither --json nor --no-color is set.
func (a *app) showsBars() bool {
	return a.terminal() && !a.json && !a.noColor && os.Getenv("NO_COLOR") == ""
}

// redraws reports whether stdout is a terminal that may be redrawn.
func (a *app) redraws() bool {
	f, ok := a.out.(*os.File)
	return ok && !a.noColor && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

// terminal reports whether stderr is a terminal.
func (a *app) terminal() bool {
	f, ok := a.errs.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
