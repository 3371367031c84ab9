// SPDX-License-Identifier: Apache-2.0

package controltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/conditions"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
)

// Run runs the cases of the file. Setup gives each new cluster its
// reconcilers.
func Run(t *testing.T, file string, setup func(*Cluster)) {
	t.Helper()
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		c := New(t)
		c.Setup(setup)
		transcript, err := c.Do(d.Input)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return transcript
	})
}

// Do carries the commands out and returns the transcript.
func (c *Cluster) Do(text string) (string, error) {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		said, err := c.command(line)
		if err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
		out.WriteString(said)
	}
	return out.String(), nil
}

// command carries out one line and returns its part of the transcript.
func (c *Cluster) command(line string) (string, error) {
	if rest, ok := strings.CutPrefix(line, "quietly "); ok {
		_, err := c.command(rest)
		return "", err
	}
	name, words, overlay := split(line)
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	if own, ok := c.Commands[name]; ok {
		return "", own(words)
	}
	switch name {
	case "claim":
		return "", c.create(c.NewClaim(word(0)), overlay)
	case "node":
		return "", c.create(c.newNode(word(0), word(1)), overlay)
	case "pool":
		return "", c.create(c.newPool(word(0)), overlay)
	case "class":
		return "", c.create(c.newClass(word(0)), overlay)
	case "ec2class":
		return "", c.create(c.newEC2Class(word(0)), overlay)
	case "overlay":
		return "", c.create(c.newOverlay(word(0)), overlay)
	case "pod":
		return "", c.create(c.newPod(word(0), word(1)), overlay)
	case "pdb":
		return "", c.create(c.newBudget(word(0), word(1)), overlay)
	case "change":
		return "", c.change(word(0), overlay)
	case "condition":
		return "", c.condition(words)
	case "delete":
		return "", c.delete(word(0))
	case "remove-finalizer":
		return "", c.change(word(0), "{metadata: {finalizers: null}}")
	case "advance":
		return "", c.advance(word(0))
	case "crash":
		return "", c.crash(word(0))
	case "cloud":
		return "", c.cloud(words)
	case "api":
		return "", c.api(words)
	case "freeze", "thaw":
		return "", c.freeze(name == "freeze", word(0))
	case "reconcile":
		return c.reconcile(line, word(0), word(1))
	case "show":
		return c.show(line, word(0), words[1:])
	default:
		return "", errors.New("unknown command")
	}
}

// split returns the name of a command, its words and the overlay behind them.
func split(line string) (name string, words []string, overlay string) {
	if i := strings.Index(line, "{"); i >= 0 {
		line, overlay = line[:i], line[i:]
	}
	words = strings.Fields(line)
	return words[0], words[1:], overlay
}

// create stores the object, with the overlay merged over it, and its status.
func (c *Cluster) create(object client.Object, overlay string) error {
	if err := yaml.Unmarshal([]byte(overlay), object); err != nil {
		return err
	}
	// An API server would drop the status here; the tracker beneath does not.
	gvk, err := c.Client.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	object.SetResourceVersion("1")
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return c.tracker.Create(resource, object, object.GetNamespace())
}

// change merges the overlay into a stored object.
func (c *Cluster) change(ref, overlay string) error {
	object, err := c.get(ref)
	if err != nil {
		return err
	}
	var patch struct {
		Metadata map[string]any `json:"metadata,omitempty"`
		Spec     map[string]any `json:"spec,omitempty"`
		Status   map[string]any `json:"status,omitempty"`
	}
	if err := yaml.UnmarshalStrict([]byte(overlay), &patch); err != nil {
		return err
	}
	if patch.Metadata == nil {
		patch.Metadata = map[string]any{}
	}
	if patch.Spec != nil {
		patch.Metadata["generation"] = object.GetGeneration() + 1
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	raw := client.RawPatch(types.MergePatchType, text)
	if err := c.Client.Patch(context.Background(), object, raw); err != nil || patch.Status == nil {
		return err
	}
	return c.Client.Status().Patch(context.Background(), object, raw)
}

// condition sets a condition: object, Type=Status, then reason and message.
func (c *Cluster) condition(words []string) error {
	object, err := c.get(words[0])
	if err != nil {
		return err
	}
	set, err := c.conditionsOf(object)
	if err != nil {
		return err
	}
	conditionType, status, _ := strings.Cut(words[1], "=")
	reason := conditionType
	if len(words) > 2 {
		reason = words[2]
	}
	set.Set(metav1.Condition{
		Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason,
		Message: strings.Join(words[min(3, len(words)):], " "),
	})
	return c.Client.Status().Update(context.Background(), object)
}

func (c *Cluster) conditionsOf(object client.Object) (*conditions.Set, error) {
	switch o := object.(type) {
	case *v1.NodeClaim:
		return o.StatusConditions(c.Clock.Now()), nil
	case *v1.NodePool:
		return o.StatusConditions(c.Clock.Now()), nil
	case *kwokv1alpha1.KWOKNodeClass:
		return o.StatusConditions(c.Clock.Now()), nil
	default:
		return nil, fmt.Errorf("%T has no such conditions", object)
	}
}

func (c *Cluster) delete(ref string) error {
	object, err := c.get(ref)
	if err != nil {
		return err
	}
	return c.Client.Delete(context.Background(), object)
}

// freeze keeps showing a claim as it is now, or ends that.
func (c *Cluster) freeze(on bool, name string) error {
	delete(c.frozen, name)
	if !on {
		return nil
	}
	claim, err := c.get("claim/" + name)
	c.frozen[name] = claim
	return err
}

func (c *Cluster) advance(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	c.Clock.SetTime(c.Clock.Now().Add(d))
	return nil
}

// cloud does what the words say to the cloud.
func (c *Cluster) cloud(words []string) error {
	switch words[0] {
	case "fail":
		err, known := cloudError(words[2], words[3:])
		if !known {
			return fmt.Errorf("unknown error %s", words[2])
		}
		c.Cloud.FailNext(cloudtest.Method(words[1]), err)
	case "slow":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		c.Cloud.SetSlowDelete(n)
	case "lose":
		c.Cloud.Lose(providerID(words[1]))
	case "add":
		m := cloud.Machine{ProviderID: words[1], Created: c.Clock.Now()}
		if len(words) > 2 {
			m.Claim, m.ClaimUID = words[2], types.UID("uid-of-"+words[2])
		}
		if slices.Contains(words, "ageless") {
			m.Created = time.Time{}
		}
		m.Deleting = slices.Contains(words, "deleting")
		c.Cloud.Add(m)
	default:
		return errors.New("unknown order to the cloud")
	}
	return nil
}

func cloudError(kind string, words []string) (err error, known bool) {
	cause := errors.New("out of luck")
	switch kind {
	case "insufficient-capacity":
		return &cloud.InsufficientCapacityError{Err: cause}, true
	case "nodeclass-not-ready":
		return &cloud.NodeClassNotReadyError{Err: cause}, true
	case "create-error":
		return &cloud.CreateError{Reason: words[0], Message: strings.Join(words[1:], " "), Err: cause}, true
	case "error":
		return errors.New(strings.Join(words, " ")), true
	default:
		return nil, false
	}
}

// api has the next call of a kind fail.
func (c *Cluster) api(words []string) error {
	kinds := map[string]error{
		"conflict":  apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "x", errors.New("modified")),
		"not-found": apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "x"),
		"error":     apierrors.NewInternalError(errors.New("etcd is away")),
	}
	err, ok := kinds[words[2]]
	if words[0] != "fail" || !ok {
		return errors.New("unknown order to the API server")
	}
	c.faults[words[1]] = err
	return nil
}

// get returns the object a reference such as claim/a names.
func (c *Cluster) get(ref string) (client.Object, error) {
	kind, name, _ := strings.Cut(ref, "/")
	var object client.Object
	key := client.ObjectKey{Name: name}
	switch kind {
	case "claim":
		object = &v1.NodeClaim{}
	case "node":
		object = &corev1.Node{}
	case "pool":
		object = &v1.NodePool{}
	case "class":
		object = &kwokv1alpha1.KWOKNodeClass{}
	case "ec2class":
		object = &awsv1.EC2NodeClass{}
	case "overlay":
		object = &v1alpha1.NodeOverlay{}
	case "pod":
		object, key.Namespace = &corev1.Pod{}, "default"
	case "pdb":
		object, key.Namespace = &policyv1.PodDisruptionBudget{}, "default"
	default:
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	return object, c.Client.Get(context.Background(), key, object)
}

// reconcile calls a reconciler and tells what came of it.
func (c *Cluster) reconcile(line, name, which string) (string, error) {
	if _, ok := c.Reconcilers[which]; !ok {
		return "", fmt.Errorf("no reconciler named %q", which)
	}
	before := c.state()
	c.told = nil
	result, failure := c.Reconcile(name, which)
	// Faults that were not met must not meet the next command.
	clear(c.faults)
	var out strings.Builder
	fmt.Fprintln(&out, line)
	for _, change := range append(before.changes(c.state()), c.told...) {
		fmt.Fprintf(&out, "  %s\n", change)
	}
	switch {
	case failure != nil:
		fmt.Fprintf(&out, "  error: %s\n", strings.ReplaceAll(failure.Error(), "\n", "; "))
	case result.RequeueAfter > 0:
		fmt.Fprintf(&out, "  again in %s\n", result.RequeueAfter)
	case result.Requeue:
		fmt.Fprintf(&out, "  again, rate limited\n")
	}
	return out.String(), nil
}
