package child

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Of what a process prints, as much is read: a burst, and then a rate. A process that prints more
// waits in its own call. Reading all of it would take processor time from the exchanges.
const (
	longestLine  = 4 << 10 // bytes; a longer line is divided
	printedBurst = 1 << 20 // bytes
	printedRate  = 64 << 10
)

// lastLines is how long what an ended process has printed is waited for. Only a process of its own
// that it has left behind can make this necessary.
const lastLines = time.Second

// printed reads what one process prints.
type printed struct {
	theirs, ours []*os.File
	ended        chan struct{} // closed when the process has ended
	tasks        sync.WaitGroup
}

// open opens a pipe for one of the outputs of a process, and gives its lines to f. Without f the
// output stays as it is.
func (p *printed) open(output *io.Writer, f func(line string)) error {
	if p.ended == nil {
		p.ended = make(chan struct{})
	}
	if f == nil {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	*output = w
	p.theirs, p.ours = append(p.theirs, w), append(p.ours, r)
	p.tasks.Go(func() { p.read(r, f) })
	return nil
}

// started closes the ends that the process has.
func (p *printed) started() {
	for _, w := range p.theirs {
		_ = w.Close()
	}
}

// wait waits for the lines of a process that has ended.
func (p *printed) wait() {
	close(p.ended)
	for _, r := range p.ours {
		_ = r.SetReadDeadline(time.Now().Add(lastLines))
	}
	p.tasks.Wait()
}

// read gives the lines of a pipe to f until it ends.
func (p *printed) read(r *os.File, f func(line string)) {
	defer r.Close()
	lines := bufio.NewReaderSize(r, longestLine)
	room, filled := printedBurst, time.Now()
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			f(strings.TrimRight(string(line), "\r\n"))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		if room -= len(line); room > 0 {
			continue
		}
		now := time.Now()
		room = min(printedBurst, room+int(now.Sub(filled).Seconds()*printedRate))
		if filled = now; room <= 0 {
			p.rest()
		}
	}
}

// rest waits for a while, or until the process has ended.
func (p *printed) rest() {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
	}
}
