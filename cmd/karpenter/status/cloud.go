// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"karpenter/cmd/karpenter/situation"
	"karpenter/kube/events"
)

// reported calls the check with what the leader reports of its work. amazon is that only AWS
// has what the check is about.
func reported(f *Facts, name string, amazon bool, check func(*situation.Health) Check) Check {
	switch h := f.Health; {
	case f.Offerings.err != nil:
		return unread(name, f.Offerings.err)
	case h == nil:
		return Check{Name: name, Verdict: Skipped, Summary: "the leader is older than this program and does not report it", Remedy: "Upgrade the controller"}
	case amazon && h.Cloud != "aws":
		return Check{Name: name, Verdict: Skipped, Summary: "the cloud provider is " + h.Cloud}
	default:
		return check(h)
	}
}

// ago writes the time since a moment in the units that count.
func (f *Facts) ago(t time.Time) string {
	switch d := max(f.Now.Sub(t), 0); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

func (f *Facts) failing(all []situation.Failing) []string {
	var out []string
	for _, x := range all {
		out = append(out, fmt.Sprintf("%s for %s: %s", x.What, f.ago(x.Since), cmp.Or(x.Code, "no answer")))
	}
	return out
}

func watchesCheck(f *Facts) Check {
	const name = "Watches"
	return reported(f, name, false, func(h *situation.Health) Check {
		if len(h.Watches) == 0 {
			return ok(name, "the leader sees every change of the cluster")
		}
		var down, without []string
		for _, x := range h.Watches {
			line := fmt.Sprintf("%s for %s", x.What, f.ago(x.Since))
			if x.Optional {
				without = append(without, line)
			} else {
				down = append(down, line)
			}
		}
		remedy := "See why: kubectl logs -A -l app.kubernetes.io/name=karpenter --prefix | grep -iE 'watch|optional'; a role may lack the right to list and watch them"
		if len(down) > 0 {
			return Check{name, Failure, "the leader sees no change of " + counted(len(down), "kind of object"), append(down, without...), remedy}
		}
		return Check{name, Warning, "the leader goes on without " + counted(len(without), "kind of object"), without,
			remedy + ". Upgrade the chart together with the image"}
	})
}

func permissionsCheck(f *Facts) Check {
	const name = "Permissions"
	return reported(f, name, true, func(h *situation.Health) Check {
		refused := slices.DeleteFunc(slices.Clone(h.Calls), func(x situation.Failing) bool { return !x.Refused })
		if len(refused) == 0 {
			return ok(name, "AWS refuses no call of the controller")
		}
		return Check{name, Warning, "AWS refuses " + counted(len(refused), "action"), f.failing(refused),
			"Allow the controller's IAM role these actions; docs/aws-permissions.md says what each is for, and deploy/aws has the policies"}
	})
}

func queueCheck(f *Facts) Check {
	const name = "Queue"
	return reported(f, name, true, func(h *situation.Health) Check {
		bad := of(h.Calls, situation.QueueAction, situation.QueueURLAction)
		switch {
		case h.Queue == "":
			return Check{name, Warning, "no interruption queue is set, so nodes are not drained before Spot interruptions", nil,
				"Create a queue as in deploy/aws, and set --interruption-queue or settings.interruptionQueue of the chart"}
		case len(bad) > 0:
			return Check{name, Failure, "interruption queue " + h.Queue + " cannot be read", f.failing(bad),
				"See whether the queue exists in the cluster's region, and allow the controller's IAM role sqs:GetQueueUrl, sqs:ReceiveMessage and sqs:DeleteMessage"}
		}
		return ok(name, "interruption queue %s is read", h.Queue)
	})
}

// stalePrices is from which age on Spot prices are suspicious: they change several times a
// day.
const stalePrices = 24 * time.Hour

func pricesCheck(f *Facts) Check {
	const name = "Prices"
	return reported(f, name, true, func(h *situation.Health) Check {
		bad := of(h.Calls, situation.SpotPricesAction, situation.OnDemandPricesAction)
		remedy := "Allow the controller's IAM role ec2:DescribeSpotPriceHistory and pricing:GetProducts, and see whether it reaches their endpoints"
		switch {
		case len(bad) > 0:
			return Check{name, Warning, "prices may be old", f.failing(bad), remedy}
		case h.SpotPrices.IsZero():
			return ok(name, "no call for prices fails")
		case f.Now.Sub(h.SpotPrices) > stalePrices:
			return Check{name, Warning, "Spot prices were last read " + f.ago(h.SpotPrices) + " ago", nil, remedy}
		}
		return ok(name, "Spot prices were read after %s UTC", h.SpotPrices.UTC().Format("15:04 on 2 January"))
	})
}

// noSpotRole is the reason of the event about a Spot launch that the account rejected for lack
// of its role.
const noSpotRole = "SpotServiceLinkedRoleMissing"

func spotRoleCheck(f *Facts) Check {
	const name = "Spot role"
	return reported(f, name, true, func(*situation.Health) Check {
		if f.Events.err != nil {
			return unread(name, f.Events.err)
		}
		for _, e := range f.Events.value {
			from := e.Source.Component == events.Source || e.ReportingController == events.Source
			if from && e.Reason == noSpotRole && f.Now.Sub(e.LastTimestamp.Time) <= recent {
				return Check{name, Failure, "the account has no service-linked role for EC2 Spot, so Spot launches fail", nil,
					"aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"}
			}
		}
		return ok(name, "no Spot launch of the last hour lacked it")
	})
}

// of returns the calls of the actions.
func of(calls []situation.Failing, actions ...string) []situation.Failing {
	return slices.DeleteFunc(slices.Clone(calls), func(x situation.Failing) bool { return !slices.Contains(actions, x.What) })
}
