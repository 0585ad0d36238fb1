package test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// asked is one kind of call that the replicator makes: the server that it is made to, and its name
// there, with what it is about.
type asked struct{ side, name string }

func (c asked) String() string { return c.side + " " + c.name }

// wrong is one answer that a server gives in place of the right one. The shims of the sides know
// what each means.
type wrong string

// Answers that each side can give.
const (
	sayLate    wrong = "late"            // the right one, after a second
	sayCut     wrong = "cut"             // carried out; the connection is closed in the middle of the reply
	sayNothing wrong = "no answer"       // not carried out; the connection stays open
	sayLost    wrong = "answer lost"     // carried out, and no answer
	sayHTML    wrong = "200 with HTML"   // of a proxy
	sayEmpty   wrong = "200 and no body" // or a message without fields
	sayObject  wrong = "200 with {}"     // well-formed, and without what each reply has
	sayFault   wrong = "500"             // or what the side has for it
	sayDenied  wrong = "access denied"
	sayUnknown wrong = "not found"
	sayInvalid wrong = "validation error"
	sayBusy    wrong = "throttled"
	sayExpired wrong = "iterator expired" // of DynamoDB's streams
	sayTrimmed wrong = "trimmed"          // of DynamoDB's streams
)

// lateness is how late late answers come, and how long nothing is awaited before the shim cuts the
// connection.
const (
	lateness = time.Second
	silence  = 8 * time.Second
)

// answersOf lists what a side can answer to a call.
func answersOf(c asked) []wrong {
	switch c.side {
	case "dynamodb":
		all := []wrong{sayUnknown, sayDenied, sayInvalid, sayBusy, sayFault, sayHTML, sayEmpty, sayObject, sayCut, sayNothing,
			sayLate}
		if c.name == "GetRecords" || c.name == "GetShardIterator" {
			all = append(all, sayExpired, sayTrimmed)
		}
		return all
	case "bigtable":
		all := []wrong{sayUnknown, sayDenied, sayInvalid, sayBusy, sayFault, sayCut, sayNothing, sayLost, sayLate}
		if strings.HasPrefix(c.name, "ReadRows") || strings.HasPrefix(c.name, "List") || strings.HasPrefix(c.name, "Get") {
			all = append(all, sayEmpty) // to a write it is the right answer
		}
		return all
	case "s3", "gcs", "azure":
		return []wrong{sayUnknown, sayDenied, sayBusy, sayFault, sayHTML, sayEmpty, sayCut, sayNothing, sayLate}
	}
	if strings.HasPrefix(c.name, "CONSUMER.MSG.NEXT") {
		return []wrong{sayCut, sayNothing, sayLost, sayLate} // it is answered by messages, not by a reply
	}
	return []wrong{sayUnknown, sayDenied, sayBusy, sayFault, sayHTML, sayEmpty, sayObject, sayCut, sayNothing, sayLost,
		sayLate}
}

// shim stands between the replicator and its servers, records what calls are made, and gives wrong
// answers.
type shim struct {
	mu    sync.Mutex
	phase string
	seen  map[asked]map[string]int // how often each was made, by phase
	plan  asked
	give  wrong
	left  int // how often; below 0: until calm
	// lead gets the answer leads for its next leadsLeft calls, below 0 until appease: the
	// replicator then makes calls that an ordinary run does not have.
	lead      asked
	leads     wrong
	leadsLeft int
	given     int
	first     time.Time
}

func newShim() *shim { return &shim{seen: map[asked]map[string]int{}} }

// enter begins a phase of the recording.
func (s *shim) enter(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phase
}

// arm lets the next calls of a kind get a wrong answer: so many, or, for times below 0, all until
// calm.
func (s *shim) arm(c asked, give wrong, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan, s.give, s.left, s.given, s.first = c, give, times, 0, time.Time{}
}

// provoke lets the next calls of a kind get a wrong answer, beside what arm asks for: so many, or,
// for times below 0, all until appease.
func (s *shim) provoke(c asked, give wrong, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lead, s.leads, s.leadsLeft = c, give, times
}

// appease ends what provoke began.
func (s *shim) appease() { s.provoke(asked{}, "", 0) }

// calm ends the wrong answers, and returns how many were given.
func (s *shim) calm() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = 0
	return s.given
}

// since returns how long ago the first wrong answer was given; 0 before.
func (s *shim) since() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given == 0 {
		return 0
	}
	return time.Since(s.first)
}

// ask records a call, and returns the wrong answer that it gets; "" for none.
func (s *shim) ask(c asked) wrong {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[c] == nil {
		s.seen[c] = map[string]int{}
	}
	s.seen[c][s.phase]++
	if s.leadsLeft != 0 && s.lead == c {
		s.leadsLeft = max(s.leadsLeft-1, -1)
		return s.leads
	}
	if s.left == 0 || s.plan != c {
		return ""
	}
	if s.given++; s.given == 1 {
		s.first = time.Now()
	}
	if s.left > 0 {
		s.left--
	}
	return s.give
}

// recorded lists the calls that were made, with their phases.
func (s *shim) recorded() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, phases := range s.seen {
		lines = append(lines, c.String()+": "+strings.Join(slices.Sorted(maps.Keys(phases)), ", "))
	}
	slices.Sort(lines)
	return lines
}

// http stands in front of a server that speaks HTTP. name returns the name of a request's call,
// refuse the reply that the server has for an answer.
func (s *shim) http(side string, name func(*http.Request) string, refuse func(wrong) (status int, body string),
	next http.Handler,
) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		give := s.ask(asked{side, name(r)})
		switch give {
		case "":
			next.ServeHTTP(rw, r)
		case sayLate:
			<-time.After(lateness)
			next.ServeHTTP(rw, r)
		case sayNothing:
			select {
			case <-r.Context().Done():
			case <-time.After(silence):
			}
			panic(http.ErrAbortHandler)
		case sayCut:
			reply := httptest.NewRecorder()
			next.ServeHTTP(reply, r)
			maps.Copy(rw.Header(), reply.Header())
			rw.Header().Set("Content-Length", fmt.Sprint(reply.Body.Len()+1))
			rw.WriteHeader(reply.Code)
			_, _ = rw.Write(reply.Body.Bytes()[:reply.Body.Len()/2])
			panic(http.ErrAbortHandler)
		case sayHTML:
			rw.Header().Set("Content-Type", "text/html")
			_, _ = rw.Write([]byte("<html><body>Sign in to the guest network</body></html>"))
		case sayEmpty:
			rw.WriteHeader(http.StatusOK)
		default:
			code, body := refuse(give)
			rw.WriteHeader(code)
			_, _ = rw.Write([]byte(body))
		}
	})
}

// dynamoCall names a request to DynamoDB.
func dynamoCall(r *http.Request) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return op
}

// dynamoRefusal returns DynamoDB's reply for an answer.
func dynamoRefusal(give wrong) (status int, body string) {
	codes := map[wrong]string{
		sayUnknown: "ResourceNotFoundException", sayDenied: "AccessDeniedException", sayInvalid: "ValidationException",
		sayBusy: "ProvisionedThroughputExceededException", sayExpired: "ExpiredIteratorException",
		sayTrimmed: "TrimmedDataAccessException", sayFault: "InternalServerError",
	}
	switch give {
	case sayObject:
		return http.StatusOK, "{}"
	case sayFault:
		status = http.StatusInternalServerError
	default:
		status = http.StatusBadRequest
	}
	return status, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"a wrong answer"}`, codes[give])
}

// s3Call names a request to S3.
func s3Call(r *http.Request) string {
	q := r.URL.Query()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	name := r.Method
	for _, sub := range []string{"uploads", "uploadId", "partNumber", "list-type", "tagging", "versioning", "lifecycle"} {
		if q.Has(sub) {
			name += " " + sub
		}
	}
	switch {
	case key == "":
		return name + " bucket " + bucket
	case path.Ext(key) == "":
		return name + " " + bucket + "/" + path.Base(key)
	}
	return name + " " + bucket + "/*" + path.Ext(key)
}

// s3Refusal returns S3's reply for an answer.
func s3Refusal(give wrong) (status int, body string) {
	of := map[wrong]struct {
		status int
		code   string
	}{
		sayUnknown: {http.StatusNotFound, "NoSuchBucket"}, sayDenied: {http.StatusForbidden, "AccessDenied"},
		sayBusy: {http.StatusServiceUnavailable, "SlowDown"}, sayFault: {http.StatusInternalServerError, "InternalError"},
	}[give]
	return of.status, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + of.code +
		"</Code><Message>a wrong answer</Message></Error>"
}

// grpc returns the error with which Bigtable answers a call, or nil. carried reports whether the
// call is carried out all the same, and emptied that its reply has no fields.
func (s *shim) grpc(ctx context.Context, c asked) (carried, emptied bool, err error) {
	of := map[wrong]codes.Code{
		sayUnknown: codes.NotFound, sayDenied: codes.PermissionDenied, sayInvalid: codes.InvalidArgument,
		sayBusy: codes.ResourceExhausted, sayFault: codes.Internal, sayCut: codes.Unavailable,
		sayLost: codes.DeadlineExceeded,
	}
	switch give := s.ask(c); give {
	case "":
		return true, false, nil
	case sayLate:
		<-time.After(lateness)
		return true, false, nil
	case sayEmpty:
		return false, true, nil
	case sayNothing:
		select {
		case <-ctx.Done():
		case <-time.After(silence):
		}
		return false, false, status.Error(codes.Unavailable, "the connection was closed")
	default:
		return give == sayCut || give == sayLost, false, status.Error(of[give], "a wrong answer")
	}
}

// bigtableCall names a call of Bigtable: the method, and for a call of its data which table it is
// about.
func bigtableCall(method string, request []byte) asked {
	name := path.Base(method)
	if !strings.Contains(method, "admin") {
		field, kind, n := protowire.ConsumeTag(request)
		if n > 0 && field == 1 && kind == protowire.BytesType {
			if table, m := protowire.ConsumeBytes(request[n:]); m > 0 {
				switch base := path.Base(string(table)); {
				case base == "tailrace_state":
					name += " " + base
				case strings.Contains(string(table), "/tables/"):
					name += " of a target"
				}
			}
		}
	}
	return asked{"bigtable", name}
}
