package front

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyWhatMustChangesInARequest(t *testing.T) {
	f := start(t, serve(t, echo), Options{})
	c := dial(t, f)
	fields := "hOsT:   " + serviceName + "\r\n" +
		"Authorization: AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=0\r\n" +
		"X-Odd:\t a  b \r\nconnection: keep-alive\r\nx-odd:\r\nExpect: nothing\r\nContent-Length: 3\r\n"
	for sent, want := range map[string]string{
		"POST http://" + serviceName + "/ HTTP/1.1":             "POST / HTTP/1.1",
		"POST HTTP://DynamoDB.us-east-1.AmazonAWS.com HTTP/1.1": "POST / HTTP/1.1",
		"POST http://" + serviceName + ":80/a%20b?c=d HTTP/1.1": "POST /a%20b?c=d HTTP/1.1",
		"POST http://" + serviceName + "?c=http://d HTTP/1.1":   "POST /?c=http://d HTTP/1.1",
	} {
		send(t, c, sent+"\r\nProxy-Connection: keep-alive\r\n"+fields+"PROXY-Authorization: Basic x\r\n\r\n{}\n")
		expect(t, c, answer(want+"\r\n"+fields+"\r\n{}\n"))
	}
	until(t, func() bool { return f.Counts().Passed == 4 })
	if got := f.Counts(); got.Refused != 0 {
		t.Errorf("counts are %+v", got)
	}
}

// TestTunnel is Java's Netty, which asks a proxy for a tunnel for plain HTTP too.
func TestTunnel(t *testing.T) {
	f := start(t, serve(t, echo), Options{})
	c := dial(t, f)
	send(t, c, "CONNECT "+serviceName+":80 HTTP/1.1\r\nhost: "+serviceName+":80\r\n\r\n")
	expect(t, c, "HTTP/1.1 200 Connection Established\r\n\r\n")
	for range 3 {
		send(t, c, passed("{}"))
		expect(t, c, answer(passed("{}")))
	}
	send(t, c, request("{}"))
	if got, _ := io.ReadAll(c); !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
		t.Errorf("a request for a host within a tunnel: %s", short(got))
	}
}

func TestServicesOfOneConnection(t *testing.T) {
	endpoints := make([]string, 2)
	for i := range endpoints {
		endpoints[i] = serve(t, func(c *net.TCPConn) {
			for readRequest(c) != "" {
				_, _ = io.WriteString(c, answer(fmt.Sprint(i)))
			}
		})
	}
	f := start(t, "", Options{Services: []Service{
		{Host: serviceName, Endpoint: endpoints[0]}, {Host: "streams." + serviceName + ":8000", Endpoint: endpoints[1]},
	}})
	c := dial(t, f)
	for range 3 {
		send(t, c, request(""))
		expect(t, c, answer("0"))
		send(t, c, strings.Replace(request(""), "http://"+serviceName, "http://streams."+serviceName+":8000", 1))
		expect(t, c, answer("1"))
	}
}

func TestRefusedRequests(t *testing.T) {
	long := strings.Repeat("x", maxHead)
	keep := func(line string) string { return line + " HTTP/1.1\r\nHost: x\r\n\r\n" }
	for _, c := range []struct {
		mode          Mode
		request, hint string
		status        int
	}{
		{Keep, keep("POST http://sts.amazonaws.com/"), "NO_PROXY=sts.amazonaws.com", 403},
		{Keep, keep("GET http://169.254.169.254/latest/meta-data"), "NO_PROXY=169.254.169.254", 403},
		{Keep, keep("POST http://" + serviceName + ":8000/"), "NO_PROXY", 403},
		{Keep, keep("POST https://" + serviceName + "/"), "http://" + serviceName, 403},
		{Keep, keep("CONNECT " + serviceName + ":443"), "http://" + serviceName, 403},
		{Keep, keep("CONNECT example.com:443"), "HTTPS_PROXY", 403},
		{Keep, keep("CONNECT example.com:80"), "NO_PROXY", 403},
		{Keep, keep("POST /"), "HTTP_PROXY=http://127.0.0.1:", 403},
		{Keep, keep("POST ftp://" + serviceName), "address", 400},
		{Keep, keep("POST nothing"), "address", 400},
		{Sign, keep("POST http://" + serviceName + "/"), "no HTTP_PROXY", 403},
		{Sign, keep("CONNECT " + serviceName + ":80"), "no HTTP_PROXY", 403},
		{Mirror, keep("CONNECT " + serviceName + ":80"), "tunnels", 403},
		{Keep, keep("POST"), "head", 400},
		{Keep, "POST / HTTP/2.0\r\n\r\n", "head", 400},
		{Keep, "POST / HTTP/1.1\nHost: x\n\n", "head", 400},
		{Keep, "POST / HTTP/1.1\r\nHost : x\r\n\r\n", "head", 400},
		{Keep, "POST / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n", "head", 400},
		{Keep, "POST / HTTP/1.1\r\nHost: x\x00\r\n\r\n", "head", 400},
		{Keep, "POST / HTTP/1.1\r\n: x\r\n\r\n", "head", 400},
		{Keep, "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "head", 400},
		{Keep, "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", "head", 400},
		{Keep, "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "head", 400},
		{Keep, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "head", 400},
		{Keep, "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "head", 400},
		{Keep, strings.Replace(request(""), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "x\r\n", "body", 400},
		{Sign, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy", "body", 400},
		{Mirror, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy", "body", 400},
		{Keep, "POST / HTTP/1.1\r\nX: " + long + "\r\n\r\n", "65536", 431},
		{Keep, "POST /" + long + long, "65536", 431},
	} {
		t.Run(c.request[:min(60, len(c.request))], func(t *testing.T) {
			f := start(t, "http://127.0.0.1:1", Options{Mode: c.mode, Sign: unsigned})
			if c.hint == "body" {
				f = start(t, serve(t, echo), Options{Mode: c.mode, Sign: unsigned})
			}
			client := dial(t, f)
			send(t, client, c.request)
			got, err := io.ReadAll(client)
			if err != nil {
				t.Fatal(err)
			}
			reply := parseReply(t, string(got))
			if reply.status != c.status || !strings.Contains(reply.Message, c.hint) {
				t.Errorf("got %s, want %d with %q", short(got), c.status, c.hint)
			}
			if strings.HasPrefix(c.request, connect) && !strings.Contains(reply.line, c.hint) {
				t.Errorf("the hint %q is not in the first line, %q", c.hint, reply.line)
			}
			if n := f.Counts().Refused; n != 1 {
				t.Errorf("%d requests are counted as refused", n)
			}
		})
	}
}

// TestPageOfABrowserIsNotSigned: DynamoDB answers pages of all origins, so each page that is open
// in a browser beside a front could read and write with the permissions of the front.
func TestPageOfABrowserIsNotSigned(t *testing.T) {
	f := start(t, serve(t, echo), Options{Mode: Sign, Sign: func(context.Context, *http.Request, string) error {
		t.Error("a request of a page is signed")
		return nil
	}})
	for _, line := range []string{"OPTIONS /", "POST /"} {
		c := dial(t, f)
		send(t, c, line+" HTTP/1.1\r\nHost: localhost\r\norigin: https://example.com\r\n\r\n")
		got, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		r := parseReply(t, string(got))
		if r.status != http.StatusForbidden || strings.Contains(string(got), "Access-Control") {
			t.Errorf("%s: %s", line, short(got))
		}
	}
}

// unsigned signs nothing.
func unsigned(_ context.Context, _ *http.Request, _ string) error { return nil }

// reply is an answer of the front itself.
type reply struct {
	line, Type, Message string
	status              int
}

func parseReply(t *testing.T, text string) (r reply) {
	t.Helper()
	parts := struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}{}
	head, body, _ := strings.Cut(text, "\r\n\r\n")
	if err := json.Unmarshal([]byte(body), &parts); err != nil {
		t.Fatalf("%s: %v", short([]byte(text)), err)
	}
	if _, err := fmt.Sscanf(head, "HTTP/1.1 %d ", &r.status); err != nil ||
		!strings.Contains(head, fmt.Sprintf("Content-Length: %d\r\n", len(body))) {
		t.Fatalf("the head is %q (%v)", head, err)
	}
	r.line, _, _ = strings.Cut(head, "\r\n")
	r.Type, r.Message = parts.Type, parts.Message
	return r
}

func services(endpoint string) []Service { return []Service{{Host: serviceName, Endpoint: endpoint}} }

func TestUnreachedService(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // as a service with TLS it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer untrusted.Close()
	failing := func(context.Context, *http.Request, string) error { return errors.New("no credentials") }
	for name, o := range map[string]Options{
		"refused":     {Services: services("http://127.0.0.1:1")},
		"no TLS":      {Services: services("https://" + silent.Addr().String()), Dial: 1},
		"no signer":   {Services: []Service{{Endpoint: serve(t, echo)}}, Mode: Sign, Sign: failing},
		"not trusted": {Services: services(untrusted.URL)},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, "", o)
			c := dial(t, f)
			text := request(strings.Repeat("x", 1<<20))
			if o.Mode == Sign {
				text = passed(strings.Repeat("x", 1<<20))
			}
			send(t, c, text)
			got, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			if r := parseReply(t, string(got)); r.status != 502 ||
				r.Type != "com.amazonaws.dynamodb.v20120810#InternalServerError" {
				t.Errorf("got %s", short(got))
			}
			if n := f.Counts(); n.Unreached != 1 || n.Passed != 0 {
				t.Errorf("counts are %+v", n)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	some := []Service{{Host: serviceName}}
	for name, o := range map[string]Options{
		"all interfaces, signing": {Listen: "0.0.0.0:0", Mode: Sign, Sign: unsigned, Services: some},
		"no address, signing":     {Listen: ":0", Mode: Sign, Sign: unsigned, Services: some},
		"a name, signing":         {Listen: "example.com:80", Mode: Sign, Sign: unsigned, Services: some},
		"no signer":               {Listen: "127.0.0.1:0", Mode: Sign, Services: some},
		"no service":              {Listen: "127.0.0.1:0"},
		"a path":                  {Listen: "127.0.0.1:0", Services: []Service{{Host: "x", Endpoint: "http://x/y"}}},
		"another scheme":          {Listen: "127.0.0.1:0", Services: []Service{{Host: "x", Endpoint: "grpc://x"}}},
		"a user":                  {Listen: "127.0.0.1:0", Services: []Service{{Host: "x", Endpoint: "http://a:b@x"}}},
		"too large a share":       {Listen: "127.0.0.1:0", Services: some, Tap: nil, Share: 1.5, Mode: Keep},
		"no number as a share":    {Listen: "127.0.0.1:0", Services: some, Share: math.NaN()},
		"no port":                 {Listen: "127.0.0.1", Services: some},
	} {
		if o.Share != 0 {
			o.Tap = discard
		}
		if f, err := New(t.Context(), o); err == nil {
			_ = f.listener.Close()
			t.Errorf("%s: no error", name)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "localhost:0", "[::ffff:127.0.0.1]:0"} {
		f, err := New(t.Context(), Options{Listen: listen, Mode: Sign, Sign: unsigned, Services: some})
		if err != nil {
			t.Errorf("%s: %v", listen, err)
			continue
		}
		_ = f.listener.Close()
	}
}

// Attack 105: an answer is cut behind each of its bytes.
func TestConnectionEndsAsTheServiceEndsIt(t *testing.T) {
	texts := map[string]string{
		"length": answer("abc"),
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	}
	for name, text := range texts {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reset %v", name, reset), func(t *testing.T) {
				if reset && runtime.GOOS != "linux" {
					t.Skip("other systems drop what was not read before a reset")
				}
				sizes := make(chan int, 1)
				f := start(t, serve(t, func(c *net.TCPConn) {
					if readRequest(c) == "" {
						return
					}
					_, _ = io.WriteString(c, text[:<-sizes])
					if reset {
						_ = c.SetLinger(0)
					}
				}), Options{})
				for size := range len(text) + 1 {
					c := dial(t, f)
					sizes <- size
					send(t, c, request("{}"))
					expect(t, c, text[:size])
					if reset {
						if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
							t.Errorf("behind %d bytes: %v, want a reset", size, err)
						}
						continue
					}
					expectEnd(t, c)
					_ = c.Close()
				}
				f.end()
				if err := <-f.done; err != nil {
					t.Error(err)
				}
				f.done <- nil
				if n := f.Counts().Passed; n != int64(len(text)+1) {
					t.Errorf("%d exchanges are counted, want %d", n, len(text)+1)
				}
			})
		}
	}
}

func TestAnswersOfAllForms(t *testing.T) {
	for name, c := range map[string]struct{ method, answer string }{
		"no body":      {"POST", "HTTP/1.1 204 No Content\r\n\r\n"},
		"not modified": {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"},
		"to HEAD":      {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"},
		"trailers": {"POST", "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n" +
			"A;x=\"y\"\r\n0123456789\r\n00\r\nX: y\r\n\r\n"},
		"before the last": {"POST", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answer("{}")},
		"no reason":       {"POST", "HTTP/1.1 400\r\nContent-Length: 0\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, serve(t, func(s *net.TCPConn) {
				for readRequest(s) != "" {
					_, _ = io.WriteString(s, c.answer)
				}
			}), Options{})
			client := dial(t, f)
			for range 3 {
				send(t, client, strings.Replace(request(""), "POST", c.method, 1))
				expect(t, client, c.answer)
			}
		})
	}
	for name, text := range map[string]string{
		"until the end": "HTTP/1.0 200 OK\r\n\r\nabc",
		"no HTTP":       "hello\r\n\r\nabc",
		"bare lines":    "HTTP/1.1 200 OK\n\nabc",
		"a bad chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nabc",
		"a long head":   "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHead) + "\r\n\r\nabc",
		"a switch":      "HTTP/1.1 101 Switching Protocols\r\n\r\nabc",
		"two":           answer("{}") + answer("{}"),
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, serve(t, func(s *net.TCPConn) {
				readRequest(s)
				_, _ = io.WriteString(s, text)
			}), Options{})
			client := dial(t, f)
			send(t, client, request(""))
			expect(t, client, text)
			expectEnd(t, client)
		})
	}
}
