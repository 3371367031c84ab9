// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"karpenter/cloud/aws/awsfake"
)

// openAccount returns the account whose changes the file at path lists, or a new
// account if there is no such file, and adds further changes to the file. Each
// line of the file is an awsfake.Entry as JSON.
//
// If the changes cannot be repeated, for example because another version of
// awssim wrote them, openAccount renames the file to path.unusable and returns a
// new account.
func openAccount(config awsfake.Config, path string, log *slog.Logger) (*awsfake.AWS, error) {
	j := &journal{path: path, log: log}
	config.Record = j.add
	entries, size, err := readJournal(path)
	if err == nil && len(entries) > 0 {
		if err := j.open(size); err != nil {
			return nil, err
		}
		var account *awsfake.AWS
		if account, err = awsfake.Restore(config, entries); err == nil {
			log.Info("continuing the account", "journal", path, "instances", len(account.Instances()))
			return account, nil
		}
		_ = j.file.Close() // nothing was written
	}
	if err != nil {
		log.Warn("starting a new account: the changes in the journal cannot be repeated", "journal", path, "kept", path+".unusable", "error", err)
		if err := os.Rename(path, path+".unusable"); err != nil {
			return nil, fmt.Errorf("move --journal out of the way: %w", err)
		}
	}
	if err := j.open(0); err != nil {
		return nil, err
	}
	return awsfake.New(config)
}

// readJournal returns the entries of the file and the number of bytes they take.
// The rest of the file, if any, is a line that awssim was killed over. A file
// that does not exist is empty.
func readJournal(path string) (entries []awsfake.Entry, size int64, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(text) {
		var e awsfake.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	return entries, int64(len(text)), nil
}

// journal is an open file of entries.
type journal struct {
	path string
	log  *slog.Logger
	file *os.File
	bad  bool // an entry is missing, so those that follow are of no use
}

// open opens the file for entries after the first size bytes.
func (j *journal) open(size int64) error {
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

// add writes an entry. The account calls it for one entry after the other.
func (j *journal) add(e awsfake.Entry) {
	if j.bad {
		return
	}
	text, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(text, '\n'))
	}
	if err != nil {
		j.bad = true
		j.log.Error("cannot write to the journal: the next run continues with the account as it is now", "journal", j.path, "error", err)
	}
}
