// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slots is how many ConfigMaps the ring has, and MostBytes how large the compressed
// lines of each grow: together 512 KiB.
const (
	Slots     = 4
	MostBytes = 128 << 10
)

// mostText bounds the lines of a segment before they are compressed.
const mostText = 8 << 20

// version of what the ConfigMaps hold.
const version = 1

// Keys of the ConfigMaps.
const (
	headKey  = "head.json"
	linesKey = "lines.jsonl.zst"
)

// Name returns the name of the ConfigMap in the slot.
func Name(slot int) string { return "karpenter-record-" + strconv.Itoa(slot) }

// Names returns the names of the ConfigMaps of the ring.
func Names() []string {
	out := make([]string, Slots)
	for slot := range out {
		out[slot] = Name(slot)
	}
	return out
}

// head is the content of a segment besides its lines.
type head struct {
	Version int       `json:"version"`
	Segment int64     `json:"segment"` // 1 and up; in slot Segment mod Slots
	LastID  int64     `json:"lastID"`  // of all Decisions so far
	Written time.Time `json:"written"`
	Meter   Meter     `json:"meter"`
}

// line is a line of a segment: one of the two.
type line struct {
	Decision *Decision `json:"decision,omitempty"`
	Outcome  *Outcome  `json:"outcome,omitempty"`
}

// segment is the content of one ConfigMap.
type segment struct {
	head
	text  []byte // lines
	added int    // lines that the last write added
}

// configMap returns the ConfigMap, and whether the lines fit into it.
func (s *segment) configMap(namespace string) (m *corev1.ConfigMap, fits bool, err error) {
	top, err := json.Marshal(s.head)
	if err != nil {
		return nil, false, err
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, false, err
	}
	packed := zip.EncodeAll(s.text, nil)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name(int(s.Segment % Slots)), Labels: map[string]string{"app.kubernetes.io/managed-by": "karpenter"}},
		Data:       map[string]string{headKey: string(top)},
		BinaryData: map[string][]byte{linesKey: packed},
	}, len(packed) <= MostBytes && len(s.text) <= mostText, nil
}

// unpack reads a segment; nil if nothing was written yet.
func unpack(m *corev1.ConfigMap) (*segment, error) {
	if m == nil || m.Data[headKey] == "" {
		return nil, nil
	}
	failed := func(err error) (*segment, error) {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
	}
	s := &segment{}
	if err := json.Unmarshal([]byte(m.Data[headKey]), &s.head); err != nil {
		return failed(fmt.Errorf("%s: %w", headKey, err))
	}
	if s.Version != version {
		return failed(fmt.Errorf("it has version %d, and this program reads version %d", s.Version, version))
	}
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostText))
	if err != nil {
		return failed(err)
	}
	defer unzip.Close()
	if s.text, err = unzip.DecodeAll(m.BinaryData[linesKey], nil); err != nil {
		return failed(fmt.Errorf("%s: %w", linesKey, err))
	}
	return s, nil
}

// lines returns the lines of the segment, with an error about the first that cannot be read.
func (s *segment) lines() (out []line, failure error) {
	scan := bufio.NewScanner(bytes.NewReader(s.text))
	scan.Buffer(nil, mostText)
	for n := 1; scan.Scan(); n++ {
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			failure = cmp.Or(failure, fmt.Errorf("segment %d, line %d: %w", s.Segment, n, err))
			continue
		}
		out = append(out, l)
	}
	return out, cmp.Or(failure, scan.Err())
}

// Rewritten returns a copy of a ConfigMap of the ring in which the functions have changed
// the Decisions and Outcomes. It is the ConfigMap itself if nothing was written yet.
func Rewritten(m *corev1.ConfigMap, decision func(*Decision) *Decision, outcome func(*Outcome) *Outcome) (*corev1.ConfigMap, error) {
	s, err := unpack(m)
	if err != nil || s == nil {
		return m, err
	}
	lines, err := s.lines()
	if err != nil {
		return nil, err
	}
	s.text = nil
	for _, l := range lines {
		if l.Decision != nil {
			l.Decision = decision(l.Decision)
		}
		if l.Outcome != nil {
			l.Outcome = outcome(l.Outcome)
		}
		text, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		s.text = append(append(s.text, text...), '\n')
	}
	packed, _, err := s.configMap(m.Namespace)
	if err != nil {
		return nil, err
	}
	out := m.DeepCopy()
	out.Data, out.BinaryData = packed.Data, packed.BinaryData
	return out, nil
}

// Record is what the ring holds.
type Record struct {
	Decisions []Decision // by ID
	Meter     Meter      // as the leader wrote it last
	Written   time.Time  // zero = nothing was written yet
	Slots     int        // ConfigMaps that hold something
	Bytes     int        // of compressed lines

	newest *segment
}

// Read reads the ring. What can be read is returned also with an error.
func Read(maps []*corev1.ConfigMap) (Record, error) {
	var out Record
	var failures []error
	var all []*segment
	for _, m := range maps {
		s, err := unpack(m)
		if err != nil {
			failures = append(failures, err)
		} else if s != nil {
			all = append(all, s)
			out.Slots++
			out.Bytes += len(m.BinaryData[linesKey])
		}
	}
	slices.SortFunc(all, func(a, b *segment) int { return int(a.Segment - b.Segment) })
	at := map[int64]int{}
	for _, s := range all {
		lines, err := s.lines()
		failures = append(failures, err)
		for _, l := range lines {
			if l.Decision != nil {
				at[l.Decision.ID] = len(out.Decisions)
				out.Decisions = append(out.Decisions, *l.Decision)
			}
			if l.Outcome == nil {
				continue
			}
			if i, known := at[l.Outcome.Of]; known { // its segment may be gone
				out.Decisions[i].Outcome = l.Outcome
			}
		}
		out.newest, out.Meter, out.Written = s, s.Meter, s.Written
	}
	return out, errors.Join(failures...)
}
