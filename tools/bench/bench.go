// SPDX-License-Identifier: MIT

// Runs the workloads of timerhub-bench on the timers of Go's runtime: time.AfterFunc, Timer.Reset
// and Timer.Stop, which any goroutine may call. Prints lines of "name value" for subject_go.c. The
// files workload_*.c describe the workloads, and bench.go has the same names and numbers. The
// workloads of one event loop, and a server with one thread, have one goroutine and GOMAXPROCS(1).
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	turnOps   = 64
	inFlight  = 64
	cancelLag = 64
	armingNs  = 4000

	requestTime = 30 * time.Second
)

type randoms uint64

func (r *randoms) below(limit int) int {
	x := uint64(*r)
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*r = randoms(x)
	return int((x * 0x2545f4914f6cdd1d >> 32) * uint64(limit) >> 32)
}

func (r *randoms) between(from, to time.Duration) time.Duration {
	return from + time.Duration(float64(to-from)*float64(r.below(1<<31))/float64(1<<31))
}

func randomsFrom(seed int) randoms {
	return randoms(uint64(seed+1) * 0x9e3779b97f4a7c15)
}

var (
	timers    = flag.Int("timers", 10000, "")
	threads   = flag.Int("threads", 1, "")
	seed      = flag.Int("seed", 0, "")
	workload  = flag.String("workload", "refresh", "")
	duration  = flag.Duration("duration", 0, "")
	list      []*time.Timer
	delivered int64
)

// record is the part of a connection that a message touches; see embedding_objects.h.
type record struct {
	messages uint64
	_        [31]uint64
}

var records []record

// openRecords writes each record, so that no measurement includes page faults.
func openRecords(count int) {
	records = make([]record, count)
	for i := range records {
		records[i].messages = 1
	}
}

func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func show(name string, value float64) {
	fmt.Println(name, value)
}

// meter has the wall time and the CPU time at the beginning of a measurement.
type meter struct {
	cpu  time.Duration
	wall time.Time
}

func startMeter() meter {
	return meter{cpu(), time.Now()}
}

func (m meter) stop(ops float64) {
	showCosts(time.Since(m.wall), cpu()-m.cpu, ops)
}

func showCosts(wall, cpu time.Duration, ops float64) {
	show("ns_per_op", float64(wall)/ops)
	show("cpu_ns_per_op", float64(cpu)/ops)
}

func count() {
	atomic.AddInt64(&delivered, 1)
}

func arm(timer int, delay time.Duration) {
	list[timer] = time.AfterFunc(delay, count)
}

func armAll(count int, from, to time.Duration) {
	r := randomsFrom(*seed)
	list = make([]*time.Timer, count+*threads*inFlight)
	for i := 0; i < count; i++ {
		arm(i, r.between(from, to))
	}
}

// team calls body in `members` goroutines, and returns the time at which all of them started.
func team(members int, body func(member int)) time.Time {
	var wait sync.WaitGroup
	start := time.Now()
	for i := 0; i < members; i++ {
		wait.Add(1)
		go func(member int) {
			defer wait.Done()
			body(member)
		}(i)
	}
	wait.Wait()
	return start
}

func timed(opsPerTurn int64, turn func(member int, r *randoms)) {
	timedBy(func(member int, r *randoms) int64 {
		turn(member, r)
		return opsPerTurn
	})
}

// timedBy repeats turn in each goroutine for the duration, and shows the cost of an operation. turn
// returns its number of operations.
func timedBy(turn func(member int, r *randoms) int64) {
	var ops int64
	dice := make([]randoms, *threads)
	for member := range dice {
		dice[member] = randomsFrom(*seed + member)
	}
	run := func(length time.Duration) time.Time {
		atomic.StoreInt64(&ops, 0)
		until := time.Now().Add(length)
		return team(*threads, func(member int) {
			r, mine := dice[member], int64(0)
			for {
				mine += turn(member, &r)
				if !time.Now().Before(until) {
					break
				}
			}
			dice[member] = r
			atomic.AddInt64(&ops, mine)
		})
	}
	run(*duration / 4)
	cpuStart := cpu()
	wall := time.Since(run(*duration))
	showCosts(wall, cpu()-cpuStart, float64(ops))
	show("mops", float64(ops)*1e3/float64(wall))
	if *threads == 1 {
		show("caller_ns", float64(wall)/float64(ops))
	}
}

func refresh(stride, touch bool) {
	armAll(*timers, time.Minute, time.Minute)
	if touch {
		openRecords(*timers)
	}
	each := *timers / *threads
	timed(turnOps, func(member int, r *randoms) {
		for i := 0; i < turnOps; i++ {
			timer := member*each + r.below(each)
			if stride {
				timer = member + r.below(each)**threads
			}
			if touch {
				records[timer].messages++
			}
			list[timer].Reset(time.Minute)
		}
	})
}

func churn() {
	armAll(*timers, time.Minute, 2*time.Minute)
	timed(turnOps, func(_ int, r *randoms) {
		for i := 0; i < turnOps; i++ {
			timer := r.below(*timers)
			list[timer].Stop()
			arm(timer, r.between(time.Minute, 2*time.Minute))
		}
	})
}

func request(touch, later bool) {
	armAll(*timers, time.Minute, 2*time.Minute)
	openRecords(inFlight)
	for i := *timers; later && i < len(list); i++ {
		arm(i, requestTime)
	}
	timed(inFlight, func(member int, _ *randoms) {
		first := *timers + member*inFlight
		for i := 0; i < inFlight; i++ {
			if touch {
				records[i].messages++
			}
			if later {
				list[first+i].Stop()
			}
			arm(first+i, requestTime)
			if !later {
				list[first+i].Stop()
			}
		}
	})
}

func server() {
	armAll(*timers, time.Minute, time.Minute)
	openRecords(*timers)
	each := *timers / *threads
	requests := make([]struct {
		list   [256]*time.Timer
		oldest int
	}, *threads)
	for member := range requests {
		for i := range requests[member].list {
			requests[member].list[i] = time.AfterFunc(requestTime, count)
		}
	}
	timedBy(func(member int, r *randoms) int64 {
		own, messages := &requests[member], 1+r.below(turnOps)
		for i := 0; i < messages; i++ {
			connection := member*each + r.below(each)
			records[connection].messages++
			list[connection].Reset(time.Minute)
			own.list[own.oldest].Stop()
			own.list[own.oldest] = time.AfterFunc(requestTime, count)
			own.oldest = (own.oldest + 1) % len(own.list)
			if r.below(1000) == 0 {
				list[connection].Stop()
				arm(connection, time.Minute)
			}
		}
		return int64(messages)
	})
}

func waitDelivered(count int) {
	for atomic.LoadInt64(&delivered) < int64(count) {
		time.Sleep(200 * time.Microsecond)
	}
}

func expire(width time.Duration, touch bool) {
	r := randomsFrom(*seed)
	ahead := time.Duration(*timers) * armingNs
	if ahead < 200*time.Millisecond {
		ahead = 200 * time.Millisecond
	}
	first := time.Now().Add(ahead)
	list = make([]*time.Timer, *timers)
	if touch {
		openRecords(*timers)
	}
	for i := range list {
		delay := time.Until(first) + r.between(0, width)
		if !touch {
			arm(i, delay)
			continue
		}
		own := &records[i]
		list[i] = time.AfterFunc(delay, func() {
			own.messages++
			count()
		})
	}
	runtime.GC()
	if time.Until(first) < 0 {
		fmt.Fprintln(os.Stderr, "arming took longer than the first timer's delay")
		os.Exit(2)
	}
	start := meter{cpu(), first}
	time.Sleep(time.Until(first))
	waitDelivered(*timers)
	start.stop(float64(*timers))
}

func pushTake() {
	var before, after runtime.MemStats
	list = make([]*time.Timer, *timers)
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := startMeter()
	for i := range list {
		arm(i, time.Duration(i))
	}
	waitDelivered(*timers)
	start.stop(float64(*timers))
	runtime.ReadMemStats(&after)
	show("allocations_per_op", float64(after.Mallocs-before.Mallocs)/float64(*timers))
}

func cross() {
	list = make([]*time.Timer, *timers)
	each := *timers / *threads
	ops, wall, cpuTotal := 0.0, time.Duration(0), time.Duration(0)
	for pass := 0; pass == 0 || wall < *duration; pass++ {
		cpuStart := cpu()
		start := team(*threads, func(member int) {
			r := randomsFrom(*seed + member + pass)
			first := member * each
			for i := 0; i < each; i++ {
				arm(first+i, r.between(time.Second, time.Minute))
				if i%2 == 0 && i >= cancelLag {
					list[first+i-cancelLag].Stop()
				}
			}
		})
		if pass > 0 { // the first pass only warms up
			wall += time.Since(start)
			cpuTotal += cpu() - cpuStart
			ops += float64(each**threads) * 3 / 2
		}
		for _, timer := range list {
			if timer != nil {
				timer.Stop()
			}
		}
	}
	showCosts(wall, cpuTotal, ops)
	show("mops", ops*1e3/float64(wall))
}

func busy(tail bool) {
	list = make([]*time.Timer, *timers)
	each := *timers / *threads
	next := make([]int, *threads*turnOps)
	times := make([][]uint32, *threads)
	timed(turnOps*3/2, func(member int, r *randoms) {
		first := member * each
		for turn := 0; turn < turnOps; turn++ {
			i, start := next[member*turnOps], time.Time{}
			delay := r.between(time.Millisecond, 100*time.Millisecond)
			if tail {
				start = time.Now()
			}
			arm(first+i, delay)
			if tail {
				times[member] = append(times[member], uint32(time.Since(start)))
			}
			if other := list[first+(i+each-cancelLag)%each]; i%2 == 0 && other != nil {
				other.Stop()
			}
			next[member*turnOps] = (i + 1) % each
		}
	})
	if !tail {
		return
	}
	all := []uint32{}
	for _, part := range times {
		all = append(all, part...)
	}
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	for _, percent := range []float64{50, 99, 99.9} {
		show(fmt.Sprintf("p%g_ns", percent), float64(all[int(percent/100*float64(len(all)))]))
	}
	show("max_us", float64(all[len(all)-1])*1e-3)
}

func lateness() {
	r := randomsFrom(*seed)
	late := make([]time.Duration, *timers)
	cpuStart := cpu()
	for i := range late {
		delay := r.between(100*time.Millisecond, 1100*time.Millisecond)
		i, deadline := i, time.Now().Add(delay)
		time.AfterFunc(delay, func() {
			late[i] = time.Since(deadline)
			count()
		})
	}
	waitDelivered(*timers)
	sort.Slice(late, func(a, b int) bool { return late[a] < late[b] })
	early := sort.Search(len(late), func(i int) bool { return late[i] >= 0 })
	for _, percent := range []float64{10, 50, 90, 99, 99.9} {
		value := float64(late[int(percent/100*float64(len(late)))]) * 1e-3
		if percent == 50 {
			show("ns_per_op", value*1e3)
		}
		show(fmt.Sprintf("p%g_us", percent), value)
	}
	show("cpu_ns_per_op", float64(cpu()-cpuStart)/float64(*timers))
	show("max_us", float64(late[len(late)-1])*1e-3)
	show("early", float64(early))
	show("earliest_us", -float64(late[0])*1e-3)
}

func resident() float64 {
	var total, pages int64
	text, _ := os.ReadFile("/proc/self/statm")
	_, _ = fmt.Sscan(string(text), &total, &pages)
	return float64(pages * int64(os.Getpagesize()))
}

func memory() {
	before, start := resident(), startMeter()
	armAll(*timers, time.Minute, 2*time.Minute)
	start.stop(float64(*timers))
	const pointer = 8 // bytes of the caller's pointer, which is the handle and does not count
	show("bytes", (resident()-before-float64(pointer*len(list)))/float64(*timers))
}

func main() {
	flag.Parse()
	if strings.HasPrefix(*workload, "loop-") || *workload == "server" && *threads == 1 {
		runtime.GOMAXPROCS(1)
	}
	run, known := map[string]func(){
		"refresh":            func() { refresh(false, false) },
		"neighbours":         func() { refresh(true, false) },
		"churn":              churn,
		"request":            func() { request(false, true) },
		"server":             server,
		"loop-refresh":       func() { refresh(false, true) },
		"loop-request":       func() { request(true, false) },
		"loop-request-later": func() { request(true, true) },
		"loop-expire":        func() { expire(time.Millisecond, true) },
		"burst":              func() { expire(time.Millisecond, false) },
		"stream":             func() { expire(time.Second, false) },
		"push-and-take":      pushTake,
		"cross":              cross,
		"cross-busy":         func() { busy(false) },
		"tail":               func() { busy(true) },
		"lateness":           lateness,
		"memory":             memory,
	}[*workload]
	if !known {
		fmt.Fprintln(os.Stderr, "no such workload:", *workload)
		os.Exit(2)
	}
	run()
}
