package pipeline

import (
	"context"
)

// BeforeLetters calls f before every walk over dead letters. It is set before Run.
func (p *Pipeline) BeforeLetters(f func(context.Context)) { p.shared.BeforeWalk = f }

// HandOver begins to hand the log of a table over to another process.
func (p *Pipeline) HandOver(source, to string) { p.handOver(source, to) }

// Works reports whether the parts of a life run for a table, and whether status shows one of them.
func (p *Pipeline) Works(source string) (runs, shown bool) {
	for _, t := range p.all() {
		if s := t.view.latest(); t.Source == source {
			return s.phase == phaseWorking, s.parts.sink != nil || s.parts.copier != nil || s.parts.whole != nil
		}
	}
	return false, false
}

// ShortOfCPU makes the pipeline find that goroutines wait for a processor, or that none does. It is
// set before Run.
func (p *Pipeline) ShortOfCPU(short bool) { p.cpuShort = func() bool { return short } }
