// SPDX-License-Identifier: Apache-2.0

package sanitize

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"karpenter/api/scheme"
)

// Wrap returns a wrapper for the transport of a rest.Config, which drops from
// our custom resources what cannot be decoded.
func Wrap() (func(http.RoundTripper) http.RoundTripper, error) {
	objects := runtime.NewScheme()
	if err := scheme.AddToScheme(objects); err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	r := newReader(objects)
	var prefixes []string
	for _, gv := range objects.PrioritizedVersionsAllGroups() {
		prefixes = append(prefixes, "/apis/"+gv.String()+"/")
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return &transport{next: next, reader: r, prefixes: prefixes}
	}, nil
}

// transport sanitizes responses about our kinds.
type transport struct {
	next     http.RoundTripper
	reader   *reader
	prefixes []string // of the paths of our kinds
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil || answer.StatusCode >= http.StatusMultipleChoices || !t.ours(r.URL.Path) || !isJSON(answer.Header) {
		return answer, err
	}
	if watch := r.URL.Query().Get("watch"); watch != "" && watch != "false" && watch != "0" {
		answer.Body = newFrames(t.reader, answer.Body)
	} else {
		answer.Body = &whole{reader: t.reader, body: answer.Body}
	}
	answer.ContentLength = -1
	answer.Header.Del("Content-Length")
	return answer, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// ours reports whether the path is about our kinds. An API server behind a
// proxy has a prefix of its own.
func (t *transport) ours(path string) bool {
	for _, prefix := range t.prefixes {
		if strings.Contains(path, prefix) {
			return true
		}
	}
	return false
}

func isJSON(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// whole is the body of a response that is one JSON value.
type whole struct {
	reader *reader
	body   io.ReadCloser
	out    *bytes.Reader // nil until the first Read
}

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	if w.out == nil {
		raw, err := io.ReadAll(w.body)
		if err != nil {
			return 0, err
		}
		w.out = bytes.NewReader(w.reader.sanitize(raw))
	}
	return w.out.Read(p)
}

// Close implements io.Closer.
func (w *whole) Close() error { return w.body.Close() }
