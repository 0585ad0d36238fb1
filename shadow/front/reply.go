package front

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// reply writes a text to the client. It reports whether another request may follow.
func (c *conn) reply(text string) bool {
	_, err := c.client.Write([]byte(text))
	return err == nil
}

// unreached answers a request of which the service has got nothing.
func (c *conn) unreached(what string, err error) bool {
	c.f.unreached.Add(1)
	c.answer(&refusal{status: http.StatusBadGateway, code: codeUnreached, hint: fmt.Sprintf("%s: %v", what, err)})
	return false
}

// refuse answers a request that is not for the service.
func (c *conn) refuse(r *refusal) bool {
	c.f.refused.Add(1)
	c.answer(r)
	return false
}

// answer writes an answer of the front in the form of the service. The connection ends with it,
// because the body of the request was not read.
func (c *conn) answer(r *refusal) {
	text, _ := json.Marshal("replicator shadow: " + r.hint) // a string always has a JSON form
	body := fmt.Sprintf(`{"__type":"com.amazon.coral.service#%s","message":%s}`, r.code, text)
	if r.code == codeUnreached {
		body = strings.Replace(body, "com.amazon.coral.service", "com.amazonaws.dynamodb.v20120810", 1)
	}
	reason := http.StatusText(r.status)
	if r.shown {
		reason = printable(r.hint)
	}
	c.reply(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s", r.status, reason, len(body), body))
}

// printable returns a text without what may not stand in the first line of an answer.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
