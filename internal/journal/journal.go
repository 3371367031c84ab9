// SPDX-License-Identifier: Apache-2.0

// Package journal keeps in a file what changed a simulated cloud, so that the next run
// continues with the same cloud.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
)

// Open returns the cloud whose changes the file at path lists, or a new one if there is
// no such file. Each line of the file is an Entry as JSON.
//
// Begin makes a cloud: it repeats the past entries, of which a new cloud has none, and
// passes further ones to record, one after the other.
//
// If the past cannot be repeated, for example because another version of the program wrote
// it, Open renames the file to path.unusable and returns a new cloud.
func Open[Entry, Cloud any](path string, log *slog.Logger, begin func(past []Entry, record func(Entry)) (Cloud, error)) (Cloud, error) {
	var none Cloud
	j := &journal[Entry]{path: path, log: log}
	past, size, err := read[Entry](path)
	if err == nil && len(past) > 0 {
		if err := j.open(size); err != nil {
			return none, err
		}
		var cloud Cloud
		if cloud, err = begin(past, j.add); err == nil {
			log.Info("continuing with the journal", "journal", path, "changes", len(past))
			return cloud, nil
		}
		_ = j.file.Close() // nothing was written
	}
	if err != nil {
		log.Warn("starting anew: the changes in the journal cannot be repeated", "journal", path, "kept", path+".unusable", "error", err)
		if err := os.Rename(path, path+".unusable"); err != nil {
			return none, fmt.Errorf("move --journal out of the way: %w", err)
		}
	}
	if err := j.open(0); err != nil {
		return none, err
	}
	return begin(nil, j.add)
}

// read returns the entries of the file and the number of bytes they take. The rest of
// the file, if any, is a line that the program was killed over. A file that does not exist
// is empty.
func read[Entry any](path string) (entries []Entry, size int64, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(text) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	return entries, int64(len(text)), nil
}

// journal is an open file of entries.
type journal[Entry any] struct {
	path string
	log  *slog.Logger
	file *os.File
	bad  bool // an entry is missing, so those that follow are of no use
}

// open opens the file for entries after the first size bytes.
func (j *journal[Entry]) open(size int64) error {
	file, err := os.OpenFile(j.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		err = file.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("open --journal: %w", err)
	}
	j.file = file
	return nil
}

// add writes an entry.
func (j *journal[Entry]) add(e Entry) {
	if j.bad {
		return
	}
	text, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(text, '\n'))
	}
	if err != nil {
		j.bad = true
		j.log.Error("cannot write to the journal: the next run continues with things as they are now", "journal", j.path, "error", err)
	}
}
