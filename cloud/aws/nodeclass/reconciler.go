// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/conditions"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/cloud/aws/expression"
	"karpenter/cloud/aws/instancetype"
)

const (
	// soon is when AWS is asked again that could not say.
	soon = 10 * time.Second
)

// Workers is how many classes are reconciled at once.
const Workers = 10

// Config configures a Reconciler. A field is required unless its comment says
// otherwise.
type Config struct {
	Client client.Client
	Clock  clock.PassiveClock
	AWS    AWS
	// Tell publishes an event about the class.
	Tell func(class *awsv1.EC2NodeClass, eventType, reason, message string)

	ClusterName string
	Cluster     instancetype.Cluster
	// Language reads expressions in kubelet configurations; nil means that they
	// are not allowed (gate NodeClassCEL).
	Language *expression.Language

	ReservedCapacity bool // the gate
	NoRehearsal      bool // DISABLE_DRY_RUN
	IsolatedVPC      bool // IAM cannot be reached when a class goes
}

// Reconciler is the controller nodeclass.
type Reconciler struct {
	Config
	verdicts verdicts
}

// New returns the controller.
func New(config Config) *Reconciler {
	return &Reconciler{Config: config, verdicts: verdicts{clock: config.Clock}}
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodeclass").
		For(&awsv1.EC2NodeClass{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(classOf), builder.WithPredicates(deletions())).
		WithOptions(options).
		Complete(r)
}

// deletions admits only that an object is gone.
func deletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// classOf names the class that a claim refers to.
func classOf(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*v1.NodeClaim).Spec.NodeClassRef
	if !refers(ref) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: ref.Name}}}
}

// refers reports whether the reference is to an EC2NodeClass.
func refers(ref *v1.NodeClassReference) bool {
	return ref != nil && ref.Group == awsv1.Group && ref.Kind == awsv1.Kind
}

// Reconcile makes one pass over a class.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := &awsv1.EC2NodeClass{}
	if err := r.Client.Get(ctx, request.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !class.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, class)
	}
	if !controllerutil.ContainsFinalizer(class, awsv1.TerminationFinalizer) {
		stored := class.DeepCopy()
		controllerutil.AddFinalizer(class, awsv1.TerminationFinalizer)
		if result, err := r.written(r.Client.Patch(ctx, class, locked(stored))); err != nil || result != (reconcile.Result{}) {
			return result, err
		}
	}
	stored := class.DeepCopy()
	result, err := r.pass(ctx, class)
	if equality.Semantic.DeepEqual(stored.Status, class.Status) {
		return result, err
	}
	conflict, failed := r.written(r.Client.Status().Patch(ctx, class, locked(stored)))
	if err = errors.Join(err, failed); err != nil {
		return reconcile.Result{}, err
	}
	return sooner(result, conflict), nil
}

// locked is a patch that fails when the class is not as it was read.
func locked(stored *awsv1.EC2NodeClass) client.Patch {
	return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
}

// written asks for another pass when the class has changed meanwhile.
func (r *Reconciler) written(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// sooner returns the result that comes back first; zero comes back never.
func sooner(a, b reconcile.Result) reconcile.Result {
	if a.RequeueAfter == 0 || b.RequeueAfter > 0 && b.RequeueAfter < a.RequeueAfter {
		return b
	}
	return a
}

// pass is one look at a class.
type pass struct {
	*Reconciler
	class *awsv1.EC2NodeClass
	set   *conditions.Set
	now   time.Time
	pools []v1.NodePool // that refer to the class
	group *instancetype.PlacementGroup
}

// step brings one condition, and its part of the status, up to date. It returns
// when to look again, zero for never.
type step struct {
	condition string
	run       func(*pass, context.Context) (time.Duration, error)
}

func steps() []step {
	return []step{
		{awsv1.AMIsReadyCondition, (*pass).images},
		{awsv1.CapacityReservationsReadyCondition, (*pass).reservations},
		{awsv1.PlacementGroupReadyCondition, (*pass).placementGroup},
		{awsv1.SubnetsReadyCondition, (*pass).subnets},
		{awsv1.SecurityGroupsReadyCondition, (*pass).securityGroups},
		{awsv1.InstanceProfileReadyCondition, (*pass).profile},
		{awsv1.ValidationSucceededCondition, (*pass).validate},
	}
}

func (r *Reconciler) pass(ctx context.Context, class *awsv1.EC2NodeClass) (reconcile.Result, error) {
	now := r.Clock.Now()
	p := &pass{Reconciler: r, class: class, set: class.StatusConditions(now, r.ReservedCapacity), now: now}
	if err := unreadable.Error(class); err != nil {
		// The status keeps what is selected now, because the unreadable fields
		// may be selectors.
		again, err := p.invalid(verdict{awsv1.UnreadableFieldsReason, err.Error()})
		return reconcile.Result{RequeueAfter: again}, err
	}
	var result reconcile.Result
	var errs []error
	for _, s := range steps() {
		again, err := s.run(p, ctx)
		if err != nil {
			p.explain(s.condition, err)
		}
		errs = append(errs, err)
		result = sooner(result, reconcile.Result{RequeueAfter: again})
	}
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, fmt.Errorf("node class %s: %w", class.Name, err)
	}
	return result, nil
}

// explain writes the error into a condition that is still Unknown.
func (p *pass) explain(condition string, err error) {
	if c := p.set.Get(condition); c == nil || c.Status != metav1.ConditionUnknown {
		return
	}
	text := err.Error()
	if code := awsclient.Code(err); code != "" {
		// Without the part that differs with each call.
		message, _, _ := strings.Cut(awsclient.Message(err), " Encoded authorization failure message:")
		text = code + ": " + message
	}
	p.set.SetUnknownWithReason(condition, conditions.AwaitingReconciliation, text)
}

// linkedPools returns the NodePools that refer to the class, by name.
func (r *Reconciler) linkedPools(ctx context.Context, class *awsv1.EC2NodeClass) ([]v1.NodePool, error) {
	pools := &v1.NodePoolList{}
	if err := r.Client.List(ctx, pools); err != nil {
		return nil, fmt.Errorf("list node pools: %w", err)
	}
	out := slices.DeleteFunc(pools.Items, func(pool v1.NodePool) bool {
		ref := pool.Spec.Template.Spec.NodeClassRef
		return !refers(ref) || ref.Name != class.Name
	})
	slices.SortFunc(out, func(a, b v1.NodePool) int { return compareNames(&a, &b) })
	return out, nil
}

// linkedClaims returns the names of the claims that refer to the class, sorted.
func (r *Reconciler) linkedClaims(ctx context.Context, class *awsv1.EC2NodeClass) ([]string, error) {
	claims := &v1.NodeClaimList{}
	if err := r.Client.List(ctx, claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list node claims: %w", err)
	}
	var out []string
	for i := range claims.Items {
		if ref := claims.Items[i].Spec.NodeClassRef; refers(ref) && ref.Name == class.Name {
			out = append(out, claims.Items[i].Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// normal is the type of the published events.
const normal = corev1.EventTypeNormal
