package launch

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// show reads the marks and shows how far the job is, until ctx ends or every file has a mark.
func (l *Launch) show(ctx context.Context, c *bigtable.Client, t *tally) error {
	bar, finish := l.bar(ctx, t)
	defer finish()
	began, first, printed := time.Now(), t.items, time.Now()
	for !t.complete() && failure.Pause(ctx, l.Poll) == nil {
		if err := t.read(ctx, c); err != nil {
			if ctx.Err() == nil {
				l.print("read marks: %s", err)
			}
			continue
		}
		now := time.Now()
		text := speed(t, t.items-first, now.Sub(began))
		if bar != nil {
			bar.text.Store(&text)
			bar.SetCurrent(int64(t.files))
		} else if now.Sub(printed) >= l.Line {
			l.print("%d of %d files · %d items · %s", t.files, t.wanted, t.items, text)
			printed = now
		}
	}
	if bar != nil { // what was copied since the last reading
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := t.read(last, c); err == nil {
			bar.SetCurrent(int64(t.files))
		}
	}
	return nil
}

// speed returns how fast items get marks, and when the rest would have theirs.
func speed(t *tally, items int64, took time.Duration) string {
	rate := float64(items) / max(took.Seconds(), 1)
	if rate < 1 {
		return "no file was finished yet; workers begin within 45 s of their start"
	}
	left := float64(max(t.order.Export.Items-t.items, 0)) / rate
	return fmt.Sprintf("%.0f items/s · about %s left", rate, (time.Duration(left) * time.Second).Round(time.Second))
}

// fileBar is a bar of files.
type fileBar struct {
	*mpb.Bar
	text atomic.Pointer[string] // behind the bar
}

// bar returns a bar on a terminal, nil elsewhere, and what ends it.
func (l *Launch) bar(ctx context.Context, t *tally) (*fileBar, func()) {
	if !l.Terminal {
		return nil, func() {}
	}
	b := &fileBar{}
	b.text.Store(new(string))
	p := mpb.NewWithContext(context.WithoutCancel(ctx), mpb.WithOutput(l.Out), mpb.WithRefreshRate(time.Second))
	b.Bar = p.AddBar(int64(t.wanted),
		mpb.PrependDecorators(decor.Name(t.order.Table+" "), decor.CountersNoUnit("%d/%d files ")),
		mpb.AppendDecorators(decor.Percentage(), decor.Any(func(decor.Statistics) string { return " " + *b.text.Load() })))
	b.SetCurrent(int64(t.files))
	return b, func() {
		b.Abort(false)
		p.Wait()
	}
}
