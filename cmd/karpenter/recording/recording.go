// SPDX-License-Identifier: Apache-2.0

// Package recording keeps what happened to the objects of a cluster in a file, so
// that every command that reads a cluster can read the recording instead, at any
// moment of it.
//
// A recording is lines of JSON, compressed with zstd: a Header, and then a
// Change for each object that was created, changed or deleted, in the order of
// time.
package recording

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	version  = 1
	mostLine = 16 << 20
)

// Header is the first line.
type Header struct {
	Version    int       `json:"version"`
	Title      string    `json:"title"`      // what was recorded
	Kubernetes string    `json:"kubernetes"` // version of the API server
	Started    time.Time `json:"started"`
}

// Change is the creation, change or deletion of an object.
type Change struct {
	At      time.Time
	Deleted bool
	Object  client.Object
}

// entry is a Change as a line.
type entry struct {
	At      time.Time       `json:"at"`
	Deleted bool            `json:"deleted,omitempty"`
	Object  json.RawMessage `json:"object"`
}

// Recording is a whole recording.
type Recording struct {
	Header
	Changes []Change // by time

	scheme *runtime.Scheme
}

// Ended is when the last change happened.
func (r *Recording) Ended() time.Time {
	if len(r.Changes) == 0 {
		return r.Started
	}
	return r.Changes[len(r.Changes)-1].At
}

// errDamaged says what to do about a recording that cannot be read to its end.
var errDamaged = errors.New("the file is damaged, or was not finished, or is not a recording. 'karpenter top --record FILE' finishes the file when you press q or Ctrl-C: record again, or copy the whole file again")

// Read reads a recording whose objects are of the scheme.
func Read(r io.Reader, scheme *runtime.Scheme) (*Recording, error) {
	out, err := read(r, scheme)
	if err != nil && !errors.Is(err, errVersion) {
		err = fmt.Errorf("read the recording: %w: %w", err, errDamaged)
	}
	return out, err
}

var errVersion = errors.New("use a program of the version that recorded it")

func read(r io.Reader, scheme *runtime.Scheme) (*Recording, error) {
	zip, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer zip.Close()
	lines := bufio.NewScanner(zip)
	lines.Buffer(nil, mostLine)
	out := &Recording{scheme: scheme}
	if !lines.Scan() {
		return nil, cmp.Or(lines.Err(), errors.New("it is empty"))
	}
	if err := json.Unmarshal(lines.Bytes(), &out.Header); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if out.Version != version {
		return nil, fmt.Errorf("read the recording: it has version %d, and this program reads version %d: %w", out.Version, version, errVersion)
	}
	for n := 2; lines.Scan(); n++ {
		c, err := parse(lines.Bytes(), scheme)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out.Changes = append(out.Changes, c)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

func parse(line []byte, scheme *runtime.Scheme) (Change, error) {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return Change{}, err
	}
	var kind struct{ APIVersion, Kind string }
	if err := json.Unmarshal(e.Object, &kind); err != nil {
		return Change{}, err
	}
	object, err := scheme.New(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	if err != nil {
		return Change{}, err
	}
	if err := json.Unmarshal(e.Object, object); err != nil {
		return Change{}, err
	}
	o, ok := object.(client.Object)
	if !ok {
		return Change{}, fmt.Errorf("%s is no object", kind.Kind)
	}
	return Change{e.At, e.Deleted, o}, nil
}

// Writer writes a recording. It is not safe for concurrent use.
type Writer struct {
	// Rewrite returns what is written in place of an object, nil if the object is left out. A nil
	// Rewrite writes the objects as they are.
	Rewrite func(client.Object) (client.Object, error)

	zip    *zstd.Encoder
	lines  *json.Encoder
	scheme *runtime.Scheme
}

// NewWriter begins a recording. Close must be called at its end.
func NewWriter(w io.Writer, h Header, scheme *runtime.Scheme) (*Writer, error) {
	zip, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	out := &Writer{zip: zip, lines: json.NewEncoder(zip), scheme: scheme}
	h.Version = version
	return out, out.lines.Encode(h)
}

// Write adds a change.
func (w *Writer) Write(c Change) error {
	gvk, err := apiutil.GVKForObject(c.Object, w.scheme)
	if err != nil {
		return err
	}
	o := c.Object
	if w.Rewrite != nil {
		if o, err = w.Rewrite(o); o == nil || err != nil {
			return err
		}
	}
	o = o.DeepCopyObject().(client.Object)
	o.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return w.lines.Encode(entry{c.At, c.Deleted, text})
}

// Close writes what is left.
func (w *Writer) Close() error { return w.zip.Close() }
