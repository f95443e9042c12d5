// SPDX-License-Identifier: MIT

// Delayed tasks in Redis from Go, without any library: the program writes the commands of
// timerhub-relay(5) to a socket. With go-redis it would have rdb.FCall(ctx, name, []string{queue},
// ...) in place of call(...).
//
// Usage: orders
// The server is the socket $REDIS_SOCKET, or 127.0.0.1:6379. A relay must run:
//
//	timerhub-relay run orders
//
// Three orders are cancelled if they are not paid. Nobody pays the first and the third, and the task
// of the third is retried once. The second is paid in time.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	queue  = "{orders}"
	second = 1000000
	// Longer than BLOCK, so that the program detects a dead connection.
	timeout = 35 * time.Second
)

type client struct {
	conn   net.Conn
	reader *bufio.Reader
}

func open() *client {
	network, address := "tcp", "127.0.0.1:6379"
	if path := os.Getenv("REDIS_SOCKET"); path != "" {
		network, address = "unix", path
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		log.Fatal(err)
	}
	return &client{conn, bufio.NewReader(conn)}
}

// Sends a command, and reads its reply, which is an int64, a string, nil, or a slice of replies.
func (c *client) do(words ...string) (any, error) {
	var command strings.Builder
	fmt.Fprintf(&command, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&command, "$%d\r\n%s\r\n", len(word), word)
	}
	if err := c.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c.conn, command.String()); err != nil {
		return nil, err
	}
	return c.read()
}

func (c *client) read() (any, error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, errors.New(rest)
	}
	number, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil || kind == ':':
		return number, err
	case number < 0:
		return nil, nil
	case kind == '$':
		text := make([]byte, number+2)
		_, err = io.ReadFull(c.reader, text)
		return string(text[:number]), err
	}
	elements := make([]any, number)
	for i := range elements {
		if elements[i], err = c.read(); err != nil {
			return nil, err
		}
	}
	return elements, nil
}

// Calls a function of the queue. The answer begins with 0 or a negative errno.
func (c *client) call(name string, arguments ...string) int64 {
	words := []string{"FCALL", "timerhub_" + name, "1", queue}
	reply, err := c.do(append(words, arguments...)...)
	if err != nil {
		log.Fatal(name, ": ", err)
	}
	return reply.([]any)[0].(int64)
}

// Puts a task. If the connection was lost, repeat the put with the same id. The answer -17 (EEXIST)
// means that the first put has arrived.
func (c *client) put(order string, delayUs int, data string) {
	result := c.call("put", order, strconv.Itoa(delayUs), "", data)
	if result != 0 && result != -17 && result != -114 {
		log.Fatal("put ", order, ": ", result)
	}
}

// Takes tasks until `count` orders are finished.
func (c *client) work(count int) {
	for count > 0 {
		reply, err := c.do("XREADGROUP", "GROUP", "timerhub", "worker-1", "COUNT", "1",
			"BLOCK", "30000", "STREAMS", "timerhub:"+queue+":ready", ">")
		if err != nil && strings.HasPrefix(err.Error(), "NOGROUP") {
			c.call("create") // the data of Redis was deleted
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		if reply == nil {
			continue
		}
		for _, one := range reply.([]any)[0].([]any)[1].([]any) {
			entry, fields := one.([]any)[0].(string), one.([]any)[1].([]any)
			order, attempt, data := fields[1].(string), fields[5].(string), fields[7].(string)
			fmt.Printf("%s: %s, attempt %s\n", order, data, attempt)
			if order == "order:3" && attempt == "1" {
				c.call("retry", order, "1000", entry)
				continue
			}
			c.call("done", order, entry)
			count--
		}
	}
}

func main() {
	c := open()
	c.call("create")
	c.put("order:1", second/20, "cancel unless paid")
	c.put("order:2", 1800*second, "cancel unless paid")
	c.put("order:3", second/10, "cancel unless paid")
	if c.call("cancel", "order:2") == 0 {
		fmt.Println("order:2: paid in time")
	}
	c.work(2)
}
