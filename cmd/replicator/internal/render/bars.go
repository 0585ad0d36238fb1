package render

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const (
	barsWidth    = 24
	barSteps     = 1000 // of a bar; more than a terminal can show
	redrawPeriod = 250 * time.Millisecond
)

// Step is how far one thing has come.
type Step struct {
	Name    string  // left of the bar; one bar for each name
	Percent float64 // 0 to 100
	Text    string  // right of the bar
}

// Bars draws bars, and writes lines above them. While there is nothing in progress it only writes.
// It may be used by several goroutines.
type Bars struct {
	out io.Writer

	mu    sync.Mutex // covers what follows
	all   *mpb.Progress
	shown map[string]*bar
}

// bar is one bar. Its text is read by the goroutine that draws.
type bar struct {
	drawn *mpb.Bar
	mu    sync.Mutex
	text  string
}

// NewBars returns bars on a terminal.
func NewBars(out io.Writer) *Bars { return &Bars{out: out, shown: map[string]*bar{}} }

// Write writes whole lines above the bars.
func (b *Bars) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all != nil {
		return b.all.Write(lines)
	}
	return b.out.Write(lines)
}

// Show draws what is in progress now, and removes the bars of everything else.
func (b *Bars) Show(now []Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(now) == 0 {
		b.clear()
		return
	}
	if b.all == nil {
		b.all = mpb.New(mpb.WithOutput(b.out), mpb.WithWidth(barsWidth), mpb.WithRefreshRate(redrawPeriod),
			mpb.WithAutoRefresh())
	}
	over := map[string]*bar{}
	for name, x := range b.shown {
		over[name] = x
	}
	for _, s := range now {
		x := b.shown[s.Name]
		if x == nil {
			x = b.add(s.Name)
		}
		x.set(s)
		delete(over, s.Name)
	}
	for name, x := range over {
		x.drawn.Abort(true)
		delete(b.shown, name)
	}
}

// add draws a new bar. The mutex is held.
func (b *Bars) add(name string) *bar {
	x := &bar{}
	x.drawn = b.all.AddBar(barSteps, mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + x.right() })))
	b.shown[name] = x
	return x
}

// set moves a bar. The bar stays below its end: Show removes it.
func (x *bar) set(s Step) {
	x.mu.Lock()
	x.text = fmt.Sprintf("%3.0f %%  %s", s.Percent, s.Text)
	x.mu.Unlock()
	x.drawn.SetCurrent(min(int64(s.Percent*barSteps/100), barSteps-1))
}

func (x *bar) right() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text
}

// Close removes all bars. Lines may be written afterwards.
func (b *Bars) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

// clear removes all bars. The mutex is held.
func (b *Bars) clear() {
	if b.all == nil {
		return
	}
	for _, x := range b.shown {
		x.drawn.Abort(true)
	}
	b.all.Wait()
	b.all, b.shown = nil, map[string]*bar{}
}
