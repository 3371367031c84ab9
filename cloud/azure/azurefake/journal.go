// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// Entry is something that changed a Cloud, or was meant to. A Cloud depends on nothing but its
// Config, the time and its entries, so Restore gets it back by repeating them.
type Entry struct {
	At time.Time `json:"at"`
	// Name is the method of an HTTP request, or one of Cloud: Evict, Preempt.
	Name string `json:"name"`
	// Target is the URL of the request without the host, or the arguments of the method.
	Target []string `json:"target"`
	// Header and Body are those of the request. Header has only what the Cloud looks at.
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	// Serial counts what the Cloud has named until then.
	Serial int `json:"serial"`
}

// Names of entries that are not requests.
const (
	evicted   = "Evict"
	preempted = "Preempt"
)

// entryHeaders are the headers of requests that change what an answer is.
func entryHeaders() []string { return []string{"If-Match", "If-None-Match", batchHeader} }

// recordLocked passes what happened to Config.Record.
func (c *Cloud) recordLocked(e Entry) {
	if c.config.Record != nil {
		e.Serial = c.serial
		c.config.Record(e)
	}
}

// changes reports whether the request may change something. A question to Resource Graph is
// a POST, and changes nothing.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.EqualFold(r.URL.Path, "/providers/Microsoft.ResourceGraph/resources")
}

// entry is the record of a request that came at the time.
func entry(r *http.Request, body []byte, at time.Time) Entry {
	out := Entry{At: at, Name: r.Method, Target: []string{r.URL.RequestURI()}, Header: map[string]string{}, Body: string(body)}
	for _, key := range entryHeaders() {
		if value := r.Header.Get(key); value != "" {
			out.Header[key] = value
		}
	}
	return out
}

// Restore returns the Cloud that recorded the entries, with the time and the settings of the
// config. It fails if repeating the entries gives other names than they record, which happens
// if the config is another one, or another version of this package recorded them.
func Restore(config Config, entries []Entry) (*Cloud, error) {
	past := config
	at := &instant{}
	past.Clock, past.Record = at, nil
	c := New(past)
	for _, e := range entries {
		at.Time = e.At
		if err := c.repeat(e); err != nil {
			return nil, fmt.Errorf("azurefake: repeat %s %q of %s: %w", e.Name, e.Target, e.At.Format(time.RFC3339), err)
		}
		if c.serial != e.Serial {
			return nil, fmt.Errorf("azurefake: %d names are given out after %s %q of %s, it was %d", c.serial, e.Name, e.Target, e.At.Format(time.RFC3339), e.Serial)
		}
	}
	c.config.Clock, c.config.Record = config.Clock, config.Record
	c.calls = map[string]int{}
	return c, nil
}

// repeat makes an entry happen again. What was refused is refused again.
func (c *Cloud) repeat(e Entry) error {
	switch {
	case e.Name == evicted && len(e.Target) == 2:
		c.Evict(e.Target[0], e.Target[1])
		return nil
	case e.Name == preempted && len(e.Target) == 1:
		c.Preempt(e.Target[0])
		return nil
	case len(e.Target) != 1:
		return errors.New("unknown name")
	}
	r, err := http.NewRequest(e.Name, endpoint+e.Target[0], strings.NewReader(e.Body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+Token)
	for key, value := range e.Header {
		r.Header.Set(key, value)
	}
	c.Handler().ServeHTTP(httptest.NewRecorder(), r)
	return nil
}

// instant is a clock that stands still.
type instant struct{ time.Time }

func (i *instant) Now() time.Time                  { return i.Time }
func (i *instant) Since(t time.Time) time.Duration { return i.Sub(t) }
