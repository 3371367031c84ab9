// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"slices"
	"strings"
	"sync"

	"karpenter/cloud/aws/client"
)

// apart makes a call for many instances and returns, by ID, why the call failed.
//
// EC2 rejects a call as a whole when one of its IDs is unknown or malformed. Then
// apart makes the call again without the IDs that the error names. If the error
// names none and single reports that it may concern only some of them, apart makes
// one call for each. It never does so when EC2 throttles or has a fault of its own:
// then the error counts for all.
func apart(ids []string, call func(ids []string) error, single func(error) bool) map[string]error {
	failed := map[string]error{}
	for len(ids) > 0 {
		err := call(ids)
		if err == nil {
			return failed
		}
		named := namedIn(ids, err)
		switch {
		case len(ids) == 1 || overloaded(err) || !single(err):
			for _, id := range ids {
				failed[id] = err
			}
			return failed
		case len(named) == 0:
			oneByOne(ids, call, failed)
			return failed
		}
		for _, id := range named {
			failed[id] = err
		}
		ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return failed[id] != nil })
	}
	return failed
}

// oneByOne makes a call for each instance, a few at a time, until EC2 throttles.
func oneByOne(ids []string, call func(ids []string) error, failed map[string]error) {
	const parallel = 10
	var mu sync.Mutex
	var stopped error
	each(len(ids), parallel, func(i int) {
		mu.Lock()
		err := stopped
		mu.Unlock()
		if err == nil {
			err = call(ids[i : i+1])
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			return
		}
		failed[ids[i]] = err
		if overloaded(err) {
			stopped = err
		}
	})
}

// overloaded reports whether more calls would do harm: EC2 throttles, has a
// fault of its own, or has not answered.
func overloaded(err error) bool {
	return client.RateLimited(err) || client.ServerFault(err) || client.Code(err) == ""
}

// aboutIDs reports whether the error is about some of the IDs in a call.
func aboutIDs(err error) bool {
	return client.NotFound(err) || client.Code(err) == "InvalidInstanceID.Malformed"
}

// namedIn returns which of the IDs the error names, if it is about some of them.
func namedIn(ids []string, err error) []string {
	if !aboutIDs(err) {
		return nil
	}
	words := strings.FieldsFunc(client.Message(err), func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	var out []string
	for _, id := range ids {
		if slices.Contains(words, id) {
			out = append(out, id)
		}
	}
	return out
}

// each calls do for all indexes below n, some at a time.
func each(n, parallel int, do func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wg.Wait()
}
