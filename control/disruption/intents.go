// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// intent is a command that waits to be confirmed.
type intent struct {
	model.Intent
	command model.Command // as last planned
	due     time.Time
}

// intents are the commands seen so far, oldest first.
type intents []intent

// confirmation is the result of comparing the intents with a plan.
type confirmation struct {
	next    intents         // those that are still in the plan, and those that are new
	found   []model.Command // the new ones
	due     []model.Command // those whose time has come
	dropped []model.Command // those that the plan no longer has, as last planned
}

// confirm compares the intents with the commands of a plan. Two commands are
// the same if they remove the same nodes for the same reason. The latest form
// counts. A new command is due after the delay, except for drift and repair:
// their purpose is not a saving, so there is no saving to confirm.
func (old intents) confirm(commands []model.Command, now time.Time, delay time.Duration) confirmation {
	var out confirmation
	planned := map[string]*model.Command{}
	for i := range commands {
		planned[identity(intentOf(&commands[i]))] = &commands[i]
	}
	for _, i := range old {
		key := identity(i.Intent)
		c := planned[key]
		if c == nil {
			out.dropped = append(out.dropped, i.command)
			continue
		}
		delete(planned, key)
		i.command = *c
		out.next = append(out.next, i)
	}
	for i := range commands {
		c := &commands[i]
		next := intent{Intent: intentOf(c), command: *c, due: now.Add(delay)}
		if _, fresh := planned[identity(next.Intent)]; !fresh {
			continue
		}
		if c.Reason == model.Drifted || c.Reason == model.Unhealthy {
			next.due = now
		}
		out.next, out.found = append(out.next, next), append(out.found, *c)
	}
	for _, i := range out.next {
		if !now.Before(i.due) {
			out.due = append(out.due, i.command)
		}
	}
	return out
}

// model returns the intents as a Snapshot has them.
func (old intents) model() []model.Intent {
	var out []model.Intent
	for _, i := range old {
		out = append(out, i.Intent)
	}
	return out
}

// without returns the intents less the command.
func (old intents) without(c *model.Command) intents {
	key := identity(intentOf(c))
	return slices.DeleteFunc(old, func(i intent) bool { return identity(i.Intent) == key })
}

// wait returns how long it is until the first intent is due, at most limit.
// Those that are due already do not count.
func (old intents) wait(now time.Time, limit time.Duration) time.Duration {
	for _, i := range old {
		if left := i.due.Sub(now); left > 0 {
			limit = min(limit, left)
		}
	}
	return limit
}

func intentOf(c *model.Command) model.Intent {
	claims := claimsOf(c)
	slices.Sort(claims)
	return model.Intent{Reason: c.Reason, Claims: claims}
}

func identity(i model.Intent) string { return string(i.Reason) + "/" + strings.Join(i.Claims, "/") }
