package pipeline_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// liar changes answers of DynamoDB by operation.
type liar struct {
	mu    sync.Mutex
	lies  map[string]func(body []byte) []byte
	asked map[string]int // answers of an operation that were given since its lie was set
}

// lie replaces the answers to an operation until truth.
func (l *liar) lie(op string, change func(body []byte) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies[op], l.asked[op] = change, 0
}

func (l *liar) truth() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.lies)
	clear(l.asked)
}

// given returns how many answers an operation got since its last lie began, or since the truth.
func (l *liar) given(op string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[op]
}

func (w *world) liar() *liar {
	l := &liar{lies: map[string]func([]byte) []byte{}, asked: map[string]int{}}
	w.tables.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
			l.mu.Lock()
			change := l.lies[op]
			l.mu.Unlock()
			whole := httptest.NewRecorder()
			next.ServeHTTP(whole, req)
			body := whole.Body.Bytes()
			for name, values := range whole.Header() {
				rw.Header()[name] = values
			}
			if change != nil {
				body = change(body)
				rw.Header().Del("X-Amz-Crc32")
				rw.Header().Del("Content-Length")
			}
			rw.WriteHeader(whole.Code)
			_, _ = rw.Write(body)
			l.mu.Lock()
			l.asked[op]++
			l.mu.Unlock()
		})
	})
	return l
}

func disabled(body []byte) []byte {
	return bytes.ReplaceAll(body, []byte(`"StreamStatus":"ENABLED"`), []byte(`"StreamStatus":"DISABLED"`))
}

// replaced names another stream as the table's latest one.
func replaced(body []byte) []byte {
	i := bytes.Index(body, []byte(`"LatestStreamArn":"`))
	if i < 0 {
		return body
	}
	end := i + len(`"LatestStreamArn":"`) + bytes.IndexByte(body[i+len(`"LatestStreamArn":"`):], '"')
	return slices.Concat(body[:end], []byte("x"), body[end:])
}

// TestOneAnswerDoesNotDisableAStream: a listing that shows the stream off, or a table that names
// another one, as long as the other call shows it taking records.
func TestOneAnswerDoesNotDisableAStream(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	l := w.liar()
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 20)
	r.settle()
	for op, change := range map[string]func([]byte) []byte{"DescribeStream": disabled, "DescribeTable": replaced} {
		l.lie(op, change)
		stored := false
		r.hastenUntil(op+" has lied three times", func() bool {
			stored = stored || r.fold("Orders").LiveStream().Disabled
			return l.given(op) >= 3
		})
		l.truth()
		r.hastenUntil("the table was described again", func() bool { return l.given("DescribeTable") >= 2 })
		if s := r.fold("Orders"); stored || s.LiveStream().Disabled || len(s.Gaps) > 0 || len(s.Streams) != 1 {
			t.Errorf("%s: disabled %v, gaps %v, %d streams", op, s.LiveStream().Disabled, s.Gaps, len(s.Streams))
		}
	}
	w.changeItems("Orders", 2, 20)
	r.settle()
	r.equal()
}

// TestEndOfAStreamIsTakenBackWhenItTakesRecords: both calls were wrong, and the end is stored. The
// first right answer takes it back: the table is ready again and reads on.
func TestEndOfAStreamIsTakenBackWhenItTakesRecords(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	l := w.liar()
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 20)
	r.settle()
	l.lie("DescribeStream", disabled)
	l.lie("DescribeTable", replaced)
	r.hastenUntil("the end of the stream is stored", func() bool { return r.fold("Orders").LiveStream().Disabled })
	l.truth()
	r.hastenUntil("the end is taken back, and the table is ready", func() bool {
		ready, _ := r.p.Ready()
		return ready && !r.fold("Orders").LiveStream().Disabled
	})
	w.changeItems("Orders", 2, 20)
	r.settle()
	r.equal()
	if s := r.fold("Orders"); len(s.Gaps) > 0 || len(s.Streams) != 1 {
		t.Errorf("gaps %v, %d streams", s.Gaps, len(s.Streams))
	}
}
