// SPDX-License-Identifier: Apache-2.0

package sanitize

import (
	"encoding/json"
	"errors"
	"io"
)

// frames is the body of a watch: one JSON value after the other, each with the
// type of an event and an object.
type frames struct {
	reader *reader
	body   io.ReadCloser
	in     *json.Decoder
	left   []byte // of the frame that is being read
	ended  error
}

func newFrames(r *reader, body io.ReadCloser) *frames {
	return &frames{reader: r, body: body, in: json.NewDecoder(body)}
}

// Read implements io.Reader. It does not wait for a second frame.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		if f.ended != nil {
			return 0, f.ended
		}
		f.next()
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// next reads a frame. What is no JSON is passed on as it is, so that the client
// reports it.
func (f *frames) next() {
	var frame json.RawMessage
	err := f.in.Decode(&frame)
	if err == nil {
		f.left = append(f.reader.event(frame), '\n')
		return
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		f.ended = err
		return
	}
	rest, readErr := io.ReadAll(f.in.Buffered())
	f.left, f.ended = rest, err
	if readErr != nil {
		f.ended = readErr
	}
}

// Close implements io.Closer.
func (f *frames) Close() error { return f.body.Close() }
